package controller

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// replayed has each part of a log decided again, checks that no event between two of them is missing, and returns how
// many there are.
func replayed(t *testing.T, log []byte) (parts int) {
	t.Helper()
	list, err := eventlog.NewReader(bytes.NewReader(log), "log")
	if err != nil {
		t.Fatal(err)
	}
	r, err := eventlog.NewReader(bytes.NewReader(log), "log")
	seq := uint64(0)
	for another := err == nil; another; another, err = r.Another() {
		began, bad := eventlog.LastRenewed(list.Part())
		if bad != nil {
			t.Fatal(bad)
		}
		h := r.Header()
		sys, bad := system.Live(&h, system.Knowledge{})
		if bad != nil {
			t.Fatal(bad)
		}
		if from, broken := h.Beginning(); broken != nil || from != nil && from.View.Version > seq {
			t.Fatalf("part of line %d: %v, or it does not start with event %d", r.Line(), broken, seq)
		}
		state, _, bad := engine.Recover(t.Context(), h, r.Part(), sys.Decider, engine.ReplayOptions{From: began.Batch})
		if bad != nil {
			t.Fatalf("part of line %d: %v", r.Line(), bad)
		}
		seq = state.View().Version
		parts++
		if _, bad := list.Another(); bad != nil {
			t.Fatal(bad)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// full is a disk that takes so many writes.
type full struct {
	bytes.Buffer

	writes int
}

func (f *full) Write(b []byte) (int, error) {
	if f.writes--; f.writes < 0 {
		return 0, errors.New("no space left on device")
	}
	return f.Buffer.Write(b)
}

// Ensure that each batch is one write, that there is nothing where there is nothing to write, and that a write that
// fails ends the log alone.
func TestHistory(t *testing.T) {
	var said strings.Builder
	disk := &full{writes: 2}
	h, err := newHistory(disk, slog.New(slog.NewTextHandler(&said, nil)), eventlog.Header{System: "fifo"},
		&eventlog.Beginning{})
	if err != nil {
		t.Fatal(err)
	}
	batch := func(seqs ...uint64) {
		h.BeginBatch()
		for _, seq := range seqs {
			h.Log(nil, &sched.Event{Seq: seq, Kind: sched.Ticked})
		}
		if bad := h.EndBatch(); bad != nil {
			t.Fatal(bad)
		}
	}
	batch()
	if disk.Len() > 0 {
		t.Errorf("written of nothing: %q", disk.String())
	}
	batch(1, 2)
	batch()
	batch(3)
	batch(4)
	batch(5)
	if n := strings.Count(said.String(), "no space left on device"); n != 1 {
		t.Errorf("%d errors, want one: %s", n, said.String())
	}
	r, err := eventlog.NewReader(&disk.Buffer, "log")
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for rec, err := r.Next(); !errors.Is(err, io.EOF); rec, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rec.Event.Seq, rec.Batch)
	}
	if want := []uint64{1, 2, 2, 2, 3, 4}; len(got) != len(want) || got[5] != want[5] {
		t.Errorf("events and batches %v, want %v", got, want)
	}
}
