// Package engine turns what happened into what to do next. It is the part that the simulator and every real cluster
// share: a driver reports events and carries plans out, a Decider says what it wants, the engine is all between them.
//
//	events ─▶ State.Apply ─▶ Decide ─▶ check, exchange ─▶ State.Reconcile ─▶ plan ─▶ the driver, who answers with events
//	              │             │              │                  │
//	              └─────────────┴──── log ─────┴──────────────────┘
//
// Its parts, in the order in which an event meets them:
//
//   - State is a fold over the log: it changes by Apply alone, one event at a time, so that equal logs give equal
//     states.
//   - Restore makes a State of what a View shows.
//   - Run is the loop. It folds the events of an instant, asks the Decider once, checks and exchanges targets,
//     reconciles, hands the plan to the driver and waits for the next instant.
//   - A check refuses a target that splits a gang, mixes GPU types or gives a GPU more tenants than it may have. One
//     refused target leaves the others of the same decision alone.
//   - Reconcile compares targets with what is observed and returns the stops and starts that are possible now.
//   - Replay runs the same loop on a recorded log and stops at the first event that differs; Recover goes on from
//     there.
//
// Whatever the engine decides is an event before it is done, with the sequence number of its place in the log. Ties are
// broken by number, never by the order of a map, so that a log and the Decider that wrote it give the same log again.
//
// The package deliberately holds no policy and knows no Decider: most are made by package pipeline, of stages. The
// format of the log is package eventlog. It opens no file and no connection (a log goes to a writer it is given), reads
// no clock (time is that of the events; the clock that measures decisions comes from the caller) and starts no
// goroutine. A bad target of a system is refused, a bad log is an error; an event of a driver that contradicts the
// state is a bug and panics.
//
// See docs/inside/architecture.md for the way of one decision through the packages.
package engine
