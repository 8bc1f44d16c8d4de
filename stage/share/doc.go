// Package share has jobs join GPUs that others use already, on trial, as EaCO does.
//
// A job may join a busy set of GPUs where all that run there keep their deadlines, or their limit. One epoch of each is
// watched, and the job is taken off again at the end of an epoch if one would be missed:
//
//	waiting ── candidates, busiest first ──▶ predicted to hold? ──▶ trial ── one whole epoch of each ──▶ kept
//	   ▲                                                              │
//	   └───────────── undone at the end of an epoch ◀─────────────────┘
//
// Core knows who is where, and finds sets; Company judges and ends trials. Who joins when is for others to say: EaCO's
// queue, or Joins, which weighs what a join is worth.
//
// Source: Haghshenas and Hashemi, "EaCO: Resource Sharing Dynamics and Its Impact on Energy Efficiency for DNN
// Training", arXiv 2412.08294, algorithms 1 and 2. What the paper leaves open is ours and marked Deviation.
package share
