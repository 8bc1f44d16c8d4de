// Package dist holds samples of total service sizes: what a policy may know about jobs it has not finished yet.
//
// A size is any amount of service that a job needs in all: seconds on its gang, or GPU-seconds. The package does not
// look at the unit; whoever reads a sample and whoever asks it must mean the same one.
//
//   - Empirical is a fixed sample, sorted, with its distribution function and quantiles. Read takes one from a file.
//   - Learned folds the sizes of finished jobs into such a sample, deterministically, and says when it has changed
//     enough to be worth looking at again.
//
// The package fits no parametric distribution, forgets nothing but by age, and knows nothing of jobs or users: a policy
// that wants one sample per user keeps one Learned per user.
package dist
