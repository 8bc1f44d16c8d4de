// Package whatifs has a program say what would have been: how the jobs of a log would have fared under other systems.
// The program is a process of its own, so that neither its memory nor a fault of it is that of who asks, and so that to
// cancel it is to kill it. One runs at a time.
package whatifs
