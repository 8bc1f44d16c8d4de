// Package driver is the driver that runs jobs as pods of a Kubernetes cluster. The API server is all it reads and
// writes.
//
// It looks: whatever changed is a key in a queue, and a look at its object compares what the cache shows with what the
// View knows. A look that shows nothing new reports nothing, so keys may come late, twice or together.
//
// It writes what is ordered, for each attempt in order, and tries until it is done or no longer wanted: an API server
// that restarts loses no order. All objects of an attempt have names that follow from its number. So a leader that
// comes back after a crash does the same again and finds it done.
//
// Each package below it is a part with its own fields. None knows the Driver, which passes a step what it needs of the
// other parts and takes what the step found:
//
//   - observer: which objects to look at, in which order
//   - inventory: nodes, their GPUs, and the numbers of both
//   - claims: which ResourceClaim holds which device
//   - jobs: which TrainingJobs arrived, and what their users want
//   - attempts: whether the pods of an attempt run, and how it ends
//   - writer: makes and deletes the objects of attempts
//   - pools: rents nodes and gives them back
//
// How an attempt starts:
//
//  1. The order is durable in the status of its TrainingJob before Apply hears of it.
//  2. The writers make a headless Service, if there are several pods, and the claims of exactly its GPUs.
//  3. Once no other claim holds these devices any more, they make the pods: one on each node. The controller-manager
//     gives back the devices of the attempt before only when its pods are gone. Pods made earlier would fall into the
//     scheduler's back-off.
//  4. All pods run: the attempt has started. If that takes too long, all go, and the GPUs of those that did not come up
//     are suspects.
//
// How it ends: its pods are deleted with the grace of the job, and once their objects are gone no process is left on
// any node. That a node is silent ends nothing: its pods may well go on. Only where its object is deleted are they
// given up.
//
// It decides nothing.
package driver
