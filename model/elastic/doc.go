// Package elastic divides a fixed number of GPUs among jobs of known speed, so that the sum of their scaling factors is
// as large as can be.
//
//   - Job is one row S(j, k) of scaling factors and the widths the job may have. Factors makes one from throughputs,
//     Fair bends one so that equal sums are shared out evenly.
//   - Table is the dynamic programme as published: P(j, K) for all j and K. P(J, K) - P(J, K-1) is what the Kth GPU is
//     worth.
//   - Solver gives the same answer for one K, ties included, much faster: by marginal gains where all rows are concave,
//     else by their concave hulls and a dynamic programme over what those leave undecided.
//   - FIFO, AFSL and Optimus are other ways to divide, BatchRule other ways to choose a batch size: the baselines.
//
// All sums are exact: factors are counted in units of 2^-30, so ties are ties, and every method, machine and order of
// summation gives the same widths.
//
// The package places nothing, learns nothing and knows no time.
//
// Source: Saxena, Jayaram, Basu, Sabharwal, Verma, "Effective Elastic Scaling of Deep Learning Workloads", MASCOTS 2020
// (arXiv 2006.13878), known to us by its abstract, by US patent 11,586,475 and by the independent implementation in
// heyfey/vodascheduler (pkg/algorithm/ffdl_optimizer.go); see docs/papers/elastic.md.
package elastic
