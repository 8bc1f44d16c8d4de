// Package freeze holds what must not change: results, event logs, the command line, the API, and what is kept on disk.
// It has tests alone. They build cmd/trainyard once, run it as users do, and compare with files in testdata, so they
// need no other package of this module and hold through every move of code.
//
//   - results.txt: for each system on bundled traces, in many variants, the hash of its event log and a digest each of
//     the log, of the document of --json, and of the table of --jobs-out (TestResults). With -short only those on the
//     small trace run. results-data.txt is the same for what needs shared data (TestResultsOnData).
//   - documents.txt: a digest of what other verbs print: plans, traces, experiments, replays, what-ifs (TestDocuments).
//     Experiments that take longer than seconds are left out: elastic.
//   - live/: event logs of real processes, whole, and in parts that start with a packed state and memory. A replay must
//     decide every decision again alike (TestReplay).
//   - state/: state folders of managers, with jobs in every state, and one of each schema. The present program must
//     take each over and keep its log (TestTakeOver, TestPromise25EachSchema). With -tags handover, an older program
//     takes part: running jobs go from it to the present one and back (TestHandBack, make handover BASE=COMMIT).
//   - inventory/: verbs, flags, exit codes, keys, names, routes, schemas and metrics. There may be more of them, and
//     sentences may change; what is listed stays (TestCommands, TestKeys, TestAPI).
//
// A digest is the first 16 bytes of SHA-256, in hexadecimal. Before a digest is taken, this is removed:
//
//   - from an event log, the fields schema and version at the start of its header line, as the version is that of the
//     build;
//   - from a document, the values of wall_s, decision_p50_us and decision_p99_us, which are measured, and all fields
//     that fields.txt does not list: documents may gain fields.
//
// Paths need no such care: every command runs in a temporary folder that holds its inputs under fixed names.
//
// The files are written by
//
//	go test ./internal/freeze -rewrite
//
// An addition (a new system, a new variant, a new flag) may be written with the change that makes it. A row that was
// there before may be renewed only in a commit of its own, which names the system and the trace of each row and the
// reason.
package freeze
