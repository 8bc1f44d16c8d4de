package local

import (
	"context"
	"errors"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// remembered counts what a driver keeps of jobs.
func (w *world) remembered() (n int) {
	w.Helper()
	if err := w.box.Do(w.Context(), w.done, func(sched.Time) {
		n = len(w.d.runs.ended) + len(w.d.runs.lost) + len(w.d.runs.watched) + len(w.d.runs.epochs) +
			len(w.d.runs.progress) +
			len(w.d.runs.live) + len(w.d.runs.resting)
	}); err != nil {
		w.Error(err)
	}
	return n
}

// Ensure that a driver keeps nothing of jobs that are done, whether they finished, failed, could not be started or were
// cancelled while they waited for another attempt; that one of a later manager does not start with it; and that orders
// about such jobs do nothing.
func TestForgetsWhatIsDone(t *testing.T) {
	t.Parallel()
	w := served(t, 1)
	for _, script := range []string{"exit 0", "exit 3", "echo TRAINYARD step=1 epoch=1; echo TRAINYARD step=2 epoch=2",
		"kill -9 $PPID; sleep 60"} {
		w.submit(script)
	}
	for j := range sched.JobID(3) {
		w.await(sched.AttemptEnded, j, 1)
	}
	if e := w.await(sched.AttemptEnded, 3, 1); e.Outcome != sched.NodeLost {
		t.Errorf("job 3 ended as %v, want its shim lost", e.Outcome)
	}
	w.box.Command(3, sched.CancelJob)
	none := func() bool { return w.remembered() == 0 }
	waitFor(t, "nothing remembered", func() bool { w.submitNothing(); return none() })
	if err := w.leave(); !errors.Is(err, context.Canceled) {
		t.Fatalf("the run ended: %v", err)
	}
	w.start(fifo(t), endless(t, w.dir, 2, 1))
	if n := w.remembered(); n > 0 {
		t.Errorf("a later driver starts with %d things", n)
	}
	before := len(w.events())
	if err := w.box.Do(t.Context(), w.done, func(sched.Time) {
		if err := w.d.Apply(t.Context(),
			sched.Plan{Actions: []sched.Action{start(0, 1, 0), stop(1, 1),
				{Kind: sched.WatchEpochs, Job: 2, On: true}}}); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.submitNothing()
	if n, events := w.remembered(), w.events()[before:]; n > 0 || len(events) > 0 {
		t.Errorf("old orders: %d things remembered, events %v", n, events)
	}
}

// submitNothing has the engine come round once.
func (w *world) submitNothing() {
	<-w.box.Post(func(*sched.View, sched.JobID, sched.Time) []sched.Event { return nil })
}
