// Package record turns the state of the engine into what API objects keep, and back: a job into the status of its
// TrainingJob, nodes, pools and what a system remembers into blobs. It is pure: it asks no one and writes nothing.
//
// The API is the only store, and it has no transaction over several objects. A batch of the engine is written object by
// object, and is complete once the version of the SchedulerPolicy says so; its orders are given after that. View mends
// what a batch cut short has left: where two jobs are to hold one GPU, who has it keeps it, and the other falls back to
// what it holds.
package record
