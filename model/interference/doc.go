// Package interference says how much slower jobs are that share their GPUs: a History of what was measured of
// co-located sets, by GPU type, mechanism and width, and a prior for what was not. A Learner fills the History from
// events; tables of published measurements can seed it.
//
//	history ── exact set ──▶ largest recorded subset × growth of the prior ──▶ prior alone
//
// A slow-down is the time of an epoch in the set over that alone: 1 = none, larger is slower. Sets are multisets of
// model names (JobSpec.Model); their order is of no account.
//
// Sources: Haghshenas and Hashemi, "EaCO", arXiv 2412.08294 (history of sets, generic factors from its tables); Hu et
// al., "Lucid", ASPLOS'23 (pairs by the sum of use, as aggregates only); Narayanan et al., "Gavel", OSDI'20 (pair
// table).
//
// The package deliberately decides nothing: which sets are worth it is handled by a system.
package interference
