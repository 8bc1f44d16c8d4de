package sched_test

import (
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that every kind is declared, with a word and a turn of its own, and that those that the engine writes come
// last in an instant.
func TestEventForms(t *testing.T) {
	words, turns := map[string]sched.EventKind{}, map[uint8]sched.EventKind{}
	for k := range sched.EventKinds {
		f := k.Form()
		if f.Word == "" {
			t.Errorf("kind %d has no word", k)
		}
		if other, twice := words[f.Word]; twice {
			t.Errorf("kinds %d and %d are both %q", other, k, f.Word)
		}
		if other, twice := turns[f.Turn]; twice {
			t.Errorf("%v and %v have the same turn", other, k)
		}
		words[f.Word], turns[f.Turn] = k, k
		if k.Own() && f.Turn < sched.Ticked.Form().Turn {
			t.Errorf("%v, which the engine writes, is folded before what drivers report", k)
		}
		if f.Attempt && f.Job != sched.Named {
			t.Errorf("%v is about an attempt and names no job", k)
		}
		if f.Moves && !f.Life {
			t.Errorf("%v moves its job and is no step in its life", k)
		}
	}
}

// Ensure that numbers of kinds stay: they are in the hashes of logs that exist.
func TestEventNumbers(t *testing.T) {
	for number, word := range []string{"none", "ended", "started", "start-failed", "progressed", "epoch", "node-left",
		"node-joined",
		"node-changed", "gpu-changed", "pool", "price", "measured", "arrived", "command", "changed", "tick", "renewed",
		"decided", "ordered",
		"moved", "refused", "rejected", "noted", "released"} {
		if got := sched.EventKind(number).String(); got != word {
			t.Errorf("kind %d is %q, want %q", number, got, word)
		}
	}
}
