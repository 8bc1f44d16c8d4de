// Package muri restates, quirks included, what the simulator released with Muri does under its three schedules
// without sharing: shortest (SRTF), shortest-gpu (SRSF) and dlas-gpu (Tiresias-L). Its figures for two virtual clusters
// of the Philly trace are the most public check there is of those policies.
//
// Source: Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM'22; the released simulator
// (Rivendile/Muri, simulator/, commit 4e69a78c), which derives from that of Tiresias.
//
// One pass of the loop, as its steps are named in the code:
//
//	next ─▶ end ─▶ arrive ─▶ settle ─▶ choose ─▶ plan ─┐
//	  ▲                                                │
//	  └──── arrivals left, or a job's end planned ◀────┘
//
// What a reader of the paper would not expect, and what is kept on purpose:
//
//   - Time is a float of seconds, and every iteration takes 1.5 % longer than the trace says (see Profile.Work).
//   - A start costs nothing. Instead every pass, for whatever reason, costs each running job its model's start-up time
//     in progress, or all progress since the pass before if that is less (see run.settle). The end that was planned for
//     a job knows nothing of it: a job that runs on undisturbed pays nothing.
//   - Under SRTF and SRSF all jobs are placed again at each pass, on the first node with room, or, above a node's
//     width, on the first whole nodes and one for the rest; one that does not fit is passed over. Running jobs move for
//     nothing. Under Tiresias, GPUs are counted and not placed, whatever the schedule's placement is said to be.
//   - Tiresias has three queues with limits of 3250 and 7200 GPU-seconds, no promotion, and looks again when a running
//     job should reach its limit: at ceil(limit/GPUs) seconds of running.
//
// The CPUs and memory that the simulator counts (92 CPUs and 520 GB a node) never bind on nodes of 8 GPUs, where jobs
// take at most 48 and 114; they are left out.
//
// The package deliberately holds no policy for use elsewhere: it shares no code with the engine.
package muri
