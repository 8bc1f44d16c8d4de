// Package store keeps the event log of a manager in an SQLite database: durably, whole batches at a time, in a folder
// that belongs to one manager at a time.
//
// A batch is all that happened at one instant and what was decided on it. It is written in one transaction, synced
// before any driver hears of its orders and before anybody hears that a job was accepted. So the log never ends inside
// a batch, and what was acknowledged is in it. What happens together shares one sync: the driver gathers for some
// milliseconds.
//
// Rows hold the lines of the log as eventlog.Writer writes them, one event each: `sqlite3 trainyard.db 'select line
// from log'` reads like the file of --events-out.
package store
