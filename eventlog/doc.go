// Package eventlog is the log outside the process: its header, its events as lines of JSON, the writer and the reader
// of both, and the hash by which two logs are compared.
//
//	Header, Event ─▶ Writer ─▶ lines of JSON ─▶ Reader ─▶ Header, Record
//	        Event ─▶ Hash
//
// A Sink hears every event of a run after its fold; a Batcher also hears where a batch starts and ends, and makes it
// durable. A log that does not start with an empty cluster carries a Beginning in its header: the View of a moment, and
// what the Decider remembered then.
//
// The format is a contract: what one version wrote, every later one reads (see upcasters), and what is read gives the
// same lines again.
//
// The package deliberately knows no state and no loop: it checks that a line is well formed, and leaves to package
// engine whether the event can have happened. It opens no file: a log goes to a writer, and comes from a reader, that
// it is given.
package eventlog
