// Package tiresias restates, bugs included, what the simulator released with Tiresias does in its multi-level
// feedback queue schedules, so that its results can be reproduced to the second.
//
// Source: Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep Learning", NSDI'19; the released simulator,
// commit 959f9b0, schedules dlas, dlas-gpu, dlas-gpu-gittins and their variants with a promote knob. Placement is
// counting: a job fits when enough GPUs are free anywhere.
//
// One pass of the loop, as its steps are named in the code:
//
//	next ─▶ end ─▶ arrive ─▶ settle ─▶ regroup ─▶ allocate ─▶ countDemoted ─▶ plan ─┐
//	  ▲                                                                             │
//	  └──────────── arrivals left, or a job's end planned ◀─────────────────────────┘
//
// Nothing is done for a job until it matters: a job that waits is not looked at, clocks are settled when a job starts
// or stops, ranks when a queue has more jobs than GPUs. The naive twin in the tests does everything at each pass.
//
// What a reader of the paper would not expect, and what is kept on purpose:
//
//   - The wake-up for a demotion is at floor((limit − executed)/GPUs), which subtracts seconds from GPU-seconds: a wide
//     job that has run before is demoted late (see run.demotionAt).
//   - When an arrival and an end fall together, the list of ending jobs is written into the arrival's record. If a
//     wake-up comes first, those jobs still end with the arrival, even if they were preempted meanwhile (see run.next).
//   - A job falls one queue per pass, and waiting jobs go behind the running ones of their queue after each pass, not
//     before the choice is made.
//   - The Gittins index divides by the expected total service, not the remaining one, in integers, with one quantum for
//     all queues (see indexAt), and is ignored as soon as a promote knob is set.
//   - Preemption and resumption cost nothing, and no one reserves GPUs for a wide job.
//
// The package deliberately holds no policy for use elsewhere: it shares no code with the engine, so that the two can be
// checked against each other.
package tiresias
