package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// history writes down all that became of jobs and nodes, in order.
type history struct {
	all  []string
	seqs []uint64
	// noRates leaves out how fast attempts are: one that finds its GPUs slow hears so at once in a fork, a moment later
	// in a run that no one was there to notice in. What comes of it must be the same.
	noRates bool
	over    int // events up to the last end of an attempt
}

// since returns what came after event seq, in order of its words: those of an instant that are of one kind may change
// places, for the view does not say in which order starts were ordered. What nodes do when all jobs are over is left
// out.
func (h *history) since(seq uint64) []string {
	at, _ := slices.BinarySearch(h.seqs, seq+1)
	return slices.Sorted(slices.Values(h.all[min(at, h.over):h.over]))
}

func (h *history) Log(v *sched.View, e *sched.Event) {
	if e.Kind == sched.Ticked || h.noRates && (e.Kind == sched.AttemptStarted || e.Kind == sched.Progressed) {
		return
	}
	h.seqs = append(h.seqs, e.Seq)
	if e.Kind == sched.AttemptEnded {
		defer func() { h.over = len(h.all) }()
	}
	h.all = append(h.all, fmt.Sprintf("%20d ", e.Time)+fmt.Sprint(e.Kind, " ", e.Job, " ", e.Attempt, " ", e.Outcome,
		" ", e.Work, " ", e.WorkFrom, " ", e.Rate,
		" ", e.Node, " ", e.Code, " ", e.Value, " ", e.GPUs))
}

// Ensure that a simulation cut at any instant and gone on with from the view and the saved memory writes the same story
// to the end as one that was never cut: every event, at the same nanosecond.
func TestForkGoesOnAsTheOriginal(t *testing.T) {
	cuts := map[string]int{}
	for seed := range uint64(12) {
		for _, name := range system.Names() {
			w := whatiftest.NewWorld(seed)
			fresh, limit, ok := w.System(name)
			if !ok {
				continue // boa has one type of GPU only
			}
			w.Header.ShareLimit = max(limit, 1)
			if err := cutOnce(t, w, fresh, seed); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			cuts[name]++
		}
	}
	for _, name := range system.Names() {
		if cuts[name] == 0 {
			t.Errorf("%s was never cut", name)
		}
	}
}

func cutOnce(t *testing.T, w *whatiftest.World, fresh whatif.System, seed uint64) error {
	batches := &counter{}
	dec, _ := fresh()
	whole := &history{noRates: w.Runtime.Changes != nil}
	err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), dec,
		engine.Options{Sinks: []eventlog.Sink{batches, whole}})
	if err != nil || batches.n < 3 {
		return err
	}
	c := &whatiftest.Cutter{W: w, Fresh: fresh, After: 1 + rand.New(rand.NewPCG(seed, 2)).IntN(batches.n-1)}
	c.Dec, _ = fresh()
	whole = &history{noRates: w.Runtime.Changes != nil}
	err = engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), c.Dec,
		engine.Options{Sinks: []eventlog.Sink{c, whole}})
	if err != nil {
		return err
	}
	if c.Moment == nil {
		return errors.New("never cut")
	}
	rest := &history{noRates: w.Runtime.Changes != nil}
	err = c.Moment.GoOn(context.Background(), w.Driver(t), rest)
	if err != nil {
		return err
	}
	return sameStory(whole.since(c.Moment.View().Version), rest.since(0))
}

func sameStory(want, got []string) error {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			return fmt.Errorf("event %d of %d, want %d in all\nfork  %s\nwhole %s", i, len(got), len(want), at(got, i),
				at(want, i))
		}
	}
	return nil
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

type counter struct{ n int }

func (c *counter) Log(*sched.View, *sched.Event) {}

func (c *counter) BeginBatch() {}

func (c *counter) EndBatch() error { c.n++; return nil }
