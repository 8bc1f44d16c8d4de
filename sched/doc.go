// Package sched is the vocabulary of Trainyard: identifiers, units, jobs, nodes, the read-only View, events,
// targets, plans, and the small interfaces that policies, systems and drivers implement.
//
// The flow of one decision, which every other package only fills in:
//
//	Driver.Next ─events─▶ engine folds them into the View ─▶ Decider.Observe, Decider.Decide
//	      ▲                                                        │ Desired: changes of target
//	      └──────────── Driver.Apply ◀─Plan─ Reconcile ◀─ Check ◀──┘
//
// The package holds no policy, reads no clock, starts no goroutine and imports the standard library only.
package sched
