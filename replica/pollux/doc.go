// Package pollux restates, quirks included, what the simulator released with Pollux does, so that its results can be
// reproduced: Tiresias to the second, the others within what is said below.
//
// Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI'21;
// petuum/adaptdl, branch osdi21-artifact, folder simulator; specification boa.md, sections 3.5 and 5.4.
//
// One round of 60 s, as its steps are named in the code:
//
//	advance ─▶ clock ─▶ submitted jobs become active ─▶ rescale ─▶ divide ─▶ move
//	   ▲                                                                     │
//	   └──────────────────────── a job is left ◀─────────────────────────────┘
//
// What a reader of the paper would not expect, and what is kept on purpose:
//
//   - Every start takes 30 s in which GPUs are held and nothing is learnt, the first one too.
//   - The rest of an epoch is rounded to whole seconds.
//   - A job that ends keeps its GPUs until the next round, and one that arrives waits for it.
//   - GPUs come from the node with most free ones, wherever that spreads a gang.
//   - Tiresias counts time by rounds, restarts included, and never promotes.
//   - Optimus knows the true time of every step, and weighs it by the iterations left after the epoch it is in.
//   - Pollux's fair share counts as being on one node, however many GPUs it has. ncf stays on one GPU.
//   - Placements that were not measured are interpolated, unscaled, over nodes, GPUs and samples (see Mesh).
//
// Where we differ, and what it costs on the published runs, is in docs/papers/elastic.md: the triangulation behind that
// interpolation, the minimizer behind Pollux's throughput model, and the random numbers of its genetic algorithm.
//
// The package deliberately holds no policy for use elsewhere: it shares no code with the engine, so that the two can be
// checked against each other.
package pollux
