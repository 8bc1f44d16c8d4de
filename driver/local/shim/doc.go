// Package shim is the tiny process that stands next to one attempt of one job: it outlives the manager, starts the job,
// keeps its output and its exit code, and ends everything the job started before it says that the attempt is over.
//
// A shim takes orders over a socket in the run directory, from the manager with the highest epoch it has heard of. It
// starts only if it holds the lock of its job, which names the last attempt started, and the locks of its devices: so
// no job has two live attempts and no device two owners, whoever gave which order when.
package shim
