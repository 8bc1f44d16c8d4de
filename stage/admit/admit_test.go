package admit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/admit"
	"github.com/trainyard/trainyard/stage/place"
)

type sizes []time.Duration

func (s sizes) Remaining(_ *sched.View, j sched.JobID) time.Duration { return s[j] }

// view is one node of 4 GPUs; jobs have the given widths.
func view(widths ...int) *sched.View {
	v := &sched.View{Now: 100e9, Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 4}}}, GPUs: make([]sched.GPU, 4)}
	for _, w := range widths {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(w)}, Attempt: sched.Running})
	}
	return v
}

// Ensure that the reservation is for when and where the first misfit will fit, and that it binds those that would delay
// it.
func TestEasy(t *testing.T) {
	v := view(1, 2, 3, 1, 1) // 0 and 1 run, 2 does not fit: at 105 s it has GPUs 0, 1, 2
	l := sched.NewLedger(v)
	l.Book(0, []sched.GPUID{0})
	l.Book(1, []sched.GPUID{1, 2})
	e := &admit.Easy{Work: sizes{9 * time.Second, 5 * time.Second, time.Second, 5 * time.Second, 6 * time.Second},
		Place: place.Count{}}
	e.Begin(v, l)
	if !e.May(v, 4, []sched.GPUID{3}) {
		t.Error("nothing is reserved yet")
	}
	if e.Misfit(v, l, 2) {
		t.Error("the walk goes on")
	}
	for _, c := range []struct {
		job  sched.JobID
		gpu  sched.GPUID
		want bool
		why  string
	}{{3, 3, true, "it ends just in time"}, {4, 3, false, "it ends too late on a reserved GPU"},
		{4, 0, true, "the GPU is not reserved"}} {
		if got := e.May(v, c.job, []sched.GPUID{c.gpu}); got != c.want {
			t.Errorf("job %d may take GPU %d: %v, but %s", c.job, c.gpu, got, c.why)
		}
	}
	if got := l.Set(1); !slices.Equal(got, []sched.GPUID{1, 2}) || l.FreeOf(0) != 1 {
		t.Errorf("the ledger is not as it was: job 1 has %v", got)
	}
	e.Misfit(v, l, 3)
	if e.May(v, 4, []sched.GPUID{3}) {
		t.Error("a second misfit changes the reservation")
	}
	if e.Begin(v, l); !e.May(v, 4, []sched.GPUID{3}) {
		t.Error("the reservation outlives its walk")
	}
}

// Ensure that Stop ends the walk at a misfit.
func TestStop(t *testing.T) {
	if !(admit.Stop{}).Misfit(nil, nil, 0) || !(admit.Stop{}).May(nil, 0, nil) {
		t.Error("Stop stops, and forbids no one")
	}
}
