// Package gavel restates, quirks included, what the simulator of Gavel does on GPUs of one type under the policies that
// need no linear program, so that its results can be reproduced to the millisecond. EaCO was evaluated in an extended
// Gavel and compared with two of these policies.
//
// Source: Narayanan et al., "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads", OSDI'20; its
// code (stanford-futuredata/gavel, commit c4fa4009), scheduler.py, policies/fifo.py and policies/gandiva.py.
//
// One round, as its steps are named in the code:
//
//	end ─▶ admit ─▶ allocate ─▶ rank ─▶ dispatch ─┐
//	 ▲                                            │
//	 └──────────── a job is left ◀────────────────┘
//
// A round is as long as its slowest job: each job runs the steps it can do in Params.Round seconds, or those it has
// left, and the next round starts when all have ended. Its own finish time counts for a job, that of the pair for two
// that share.
//
// What a reader of the paper would not expect, and what is kept on purpose:
//
//   - Shares are computed again only when a job came or went and Reset seconds have passed (or never yet, or nothing
//     ran and nothing is to come).
//   - Fifo gives the place of a job that is done to the head of the queue whatever its width, if it fits into what the
//     places before leave; if not, that job is out of the queue until shares are computed again.
//   - The job at which filling stops is out of the queue as well: packing starts with the one behind it.
//   - A pair that was never run together is owed half a round from the first reset on.
//   - Gandiva gives idle GPUs to jobs and pairs of no share. Jobs that came since shares were computed take room in a
//     round without running.
//   - A round in which one GPU of a job would do no whole step is lost; five in a row fail the job.
//   - Time without jobs counts as run time of the round after it.
//
// Left out: GPUs of several types, spread placement (the simulator never looks at it), estimated throughputs and the
// policies that solve linear programs.
//
// The package deliberately holds no policy for use elsewhere: it shares no code with the engine.
package gavel
