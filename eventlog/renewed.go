package eventlog

import (
	"iter"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// gives stands between the two systems in the Text of a Renewed.
const gives = " gives way to "

// GivesWay is the Text of a Renewed by which another system goes on, or the same one with other settings. Each is named
// with its settings behind it, as in "las quantum=30".
func GivesWay(was, is string) string { return was + gives + is }

// GaveWay returns the system that decided until a Renewed with that Text, with its settings; "" if the same system
// starts again.
func GaveWay(text string) string {
	was, _, ok := strings.Cut(text, gives)
	if !ok {
		return ""
	}
	return was
}

// RenewedMark is in the line of every Renewed, and of no other event: in a text its quotes would be escaped.
const RenewedMark = `"event":"renewed"`

// LastRenewed reads a log to its end and returns the last record in which a system started again: before it, others may
// have decided than the one of the header. Its Batch is 0 if there is none.
func LastRenewed(log iter.Seq2[*Record, error]) (last Record, err error) {
	for rec, err := range log {
		if err != nil {
			return Record{}, err
		}
		if rec.Event.Kind == sched.Renewed {
			last = *rec
		}
	}
	return last, nil
}

// Deciders is a Sink that notes the systems that gave way to others after they had decided something.
type Deciders struct {
	Earlier []string // with their settings, in order; nil = one system decided all

	decided bool // since the last of them gave way
}

// Log notes decisions and changes of system.
func (d *Deciders) Log(_ *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.Decided:
		d.decided = true
	case sched.Renewed:
		if was := GaveWay(e.Text); was != "" && d.decided {
			d.Earlier, d.decided = append(d.Earlier, was), false
		}
	}
}

// InTurn names systems that decided one after the other, without their settings: "pollux, then las".
func InTurn(earlier []string, last string) string {
	var names []string
	for _, s := range append(slices.Clone(earlier), last) {
		name, _, _ := strings.Cut(s, " ")
		names = append(names, name)
	}
	return strings.Join(slices.Compact(names), ", then ")
}
