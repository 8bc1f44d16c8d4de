// Package gittins computes the Gittins index of a job from the service it has attained and a sample of the sizes of
// other jobs: the chance to finish within a quantum, for each unit of service spent on it.
//
// Serving the job of the largest index first keeps the mean completion time low when sizes are random and only their
// distribution is known. Tiresias (Gu et al., NSDI'19, section 3) orders jobs by it inside each of its queues, with
// service in GPU-seconds.
//
//   - Index is the definition, in O(n), and the twin that the fast code is tested against.
//   - Table answers for one sample and one quantum in O(log buckets), constant between a bounded number of edges, so
//     that a job is ranked again only when it crosses one.
//
// The package knows neither queues nor jobs, and computes the textbook index only. Sizes, attained service and quantum
// share one unit; indices are per that unit.
package gittins
