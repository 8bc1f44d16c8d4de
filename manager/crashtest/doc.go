// Package crashtest kills managers. Its tests build the real program, with failpoints, run a file of short jobs with
// it, kill it again and again between any two durable steps and at random instants, and start it again each time, until
// the jobs are done. What they compare the end with is not the program's own belief, but what was seen from outside:
//
//   - the lines by which the program acknowledged jobs, and the answers of `trainyard cancel`;
//   - the ledger that the jobs' processes keep (examples/trainer), with locks of their own;
//   - the shims' processes that were alive when a manager died.
//
// One campaign kills the shims as well, at points of their own: then attempts are lost, but no job.
//
// The package has no code but its tests.
package crashtest
