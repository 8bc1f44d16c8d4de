// Package speedup says how fast training goes by GPUs, nodes and batch size.
//
// An App is an application as it truly is, or as someone believes it to be: a chain of phases (epochs whose
// statistical efficiency differs), each with a size in the application's own unit of progress and a speed for every Way
// to run. A Chain is what deciding needs of it: for each phase the best speed by width alone. A Source gives the Chain
// of a job: an oracle that looks at the true App, or an estimator that learned one from events.
//
// Applications come from
//
//   - measured steps and gradients: Profile, read by ReadProfiles; the truth of simulations of Pollux, Sia and BOA,
//   - measured throughput by batch size and GPUs: Throughputs, read by ReadThroughputs,
//   - a model of how long an update takes (Additive, Overlap, which FitOverlap fits) and of what it is worth (Samples,
//     Validation, Epochs), put together by a Trainer, which knows how batches are divided,
//   - speedups alone: Stages, each with a Law, such as Amdahl.
//
// A Meter translates between the progress of an application and the work of a job, which is time on the GPUs it asked
// for. Oracle and Learned are Sources.
//
// The package does not decide anything: see model/price, stage/allocate.
package speedup
