// Package straggler finds GPUs that are slow now from what running jobs say of their step times.
//
// A Detector hears which attempt runs where (Start, End) and how long its steps take (Report). It answers with
// checks: a GPU takes so many times as long as it should, or is as fast as expected. Three questions are answered in
// turn:
//
//   - What should a step take? What the job's own earlier attempts took, else what jobs of the same Kind take
//     elsewhere, else what those of other kinds take where these agree, else what the first reports of the attempt
//     said. The noise is learned from the differences of successive reports.
//   - Has it changed? A CUSUM over the logarithm of step time, with clipped steps, and the median of the last reports
//     must both say so: one odd report never does, a slow drift and a sudden jump both do.
//   - Who is to blame? A synchronous gang shows its slowest GPU only. GPUs that have served a healthy attempt since are
//     cleared; of the rest, the GPU, node or rack that explains most slow attempts is blamed; where several explain as
//     many, they share the blame.
//
// A job whose attempts are slow wherever it goes has changed itself, and no one is blamed.
//
// The package decides nothing: what a check is worth, how it is forgotten and what becomes of the GPU is for whoever
// asks (see model/variability.Tracker). It knows classes and scores only through what it is asked to expect. The unit
// of step time does not matter, as long as a job keeps to it.
//
// Sources: Page, "Continuous inspection schemes", Biometrika 1954 (CUSUM). The questions are those of Greyhound, USENIX
// ATC'25, as its authors summarise it; the way of attribution is our own.
package straggler
