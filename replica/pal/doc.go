// Package pal restates, quirks included, what the simulator released with PAL does, so that its results can be
// reproduced to the second.
//
// Source: Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU Clusters", SC'24; its fork
// of Blox (EuroSys'24), tag artifact-v1.4, commit 8a590708: placements PAL, PM-First, Packed and Random, orders FIFO,
// LAS and SRTF.
//
// One boundary between two rounds, as its steps are named in the code:
//
//	finish ─▶ admit ─▶ sort ─▶ place ─▶ jump ─┐
//	  ▲                                       │
//	  └───────── a tracked job is left ◀──────┘
//
// Nothing is done for a job until it matters: progress is added up, rounding as round after round would, when a job
// changes GPUs or finishes; GPUs are chosen again only when the jobs to place have changed; boundaries at which nothing
// can change are jumped over. The naive twin in the tests does everything in each round.
//
// What a reader of the paper would not expect, and what is kept on purpose:
//
//   - Finishing, like everything, happens between rounds: GPUs of a job that is done stay held until then.
//   - Moves, preemptions and launches cost nothing.
//   - Decisions read binned scores, progress the raw ones.
//   - Class priority never changes which jobs run, only who chooses first. There is no backfill.
//   - PAL takes the emptiest node among equals, and ignores locality for jobs wider than a node.
//   - The trace repeats itself after its last job, and its second issue competes for GPUs with the first (see trace).
//   - LAS counts seconds, not GPU-seconds, and SRTF the time at nominal speed.
//   - The scores come from single rows drawn at random, and Random placements continue that generator (see Draw).
//
// Left out: the priority of a job that was not scheduled for 3,600,000 seconds, which no recorded run shows.
//
// The package deliberately holds no policy for use elsewhere: it shares no code with the engine, so that the two can be
// checked against each other.
package pal
