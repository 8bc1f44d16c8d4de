// Package whatif answers questions about the future of a cluster, on copies: when jobs start and end (Forecast), what
// would let a job start now (Remedies), and who displaced it (Displacements). How a recorded past would have gone under
// other systems is the verb whatif, in package past.
//
// A Moment is the copy: state and memory of the system at one instant. Every answer forks it, lets the engine, the
// system and the simulator go on from there, and throws the fork away. Nothing is touched that lives. A Moment may be
// used by several goroutines at once if its System may.
//
// It does no I/O, reads no clock, starts no goroutine and draws from seeds alone, so that the same question
// about the same moment has the same answer.
package whatif
