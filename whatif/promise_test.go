package whatif_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// acts is a driver in which a user does something and then no one anything: time passes to the system's next turn, if
// that is near and job is given nothing before.
type acts struct {
	v     *sched.View
	job   sched.JobID
	does  []sched.Event
	turns int
}

func (a *acts) Sync(_ context.Context, v *sched.View) ([]sched.Event, error) {
	a.v = v
	for i := range a.does {
		a.does[i].Time = v.Now
	}
	return a.does, nil
}

func (a *acts) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	if a.turns++; a.turns > 1 || len(a.v.Job(a.job).Target) > 0 || until > a.v.Now.Add(10*time.Minute) {
		return nil, io.EOF
	}
	return []sched.Event{{Time: max(until, a.v.Now), Kind: sched.Ticked}}, nil
}

func (a *acts) Apply(context.Context, sched.Plan) error { return nil }

func (a *acts) Now() sched.Time { return a.v.Now }

// given has a user act on a copy of m and reports whether job j, or the last one if the user hands one in, is given
// GPUs.
func given(t *testing.T, m *whatif.Moment, j sched.JobID, does ...sched.Event) bool {
	t.Helper()
	if slices.ContainsFunc(does, func(e sched.Event) bool { return e.Kind == sched.JobArrived }) {
		j = sched.JobID(len(m.View().Jobs))
	}
	a := &acts{job: j, does: does}
	if err := m.GoOn(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return len(a.v.Job(j).Target) > 0
}

// resized is what `trainyard resize` does.
func resized(m *whatif.Moment, j sched.JobID, r sched.Range) sched.Event {
	c := m.View().Job(j).Spec.Change()
	c.GPUs = r
	return sched.Event{Kind: sched.JobChanged, Job: j, Change: &c}
}

// doing is what a user does who takes a remedy.
func doing(m *whatif.Moment, j sched.JobID, r *whatif.Remedy) []sched.Event {
	if r.Change == whatif.OtherGPUs {
		return []sched.Event{resized(m, j, r.Spec.GPUs)}
	}
	return []sched.Event{{Kind: sched.JobArrived, Spec: r.Spec},
		{Kind: sched.JobCommanded, Job: j, Code: int32(sched.CancelJob)}}
}

// makePicky has half of the jobs refuse to share GPUs, and half ask for one of several types.
func makePicky(w *whatiftest.World, r *rand.Rand) {
	for i := range w.Trace.Jobs {
		if r.IntN(2) == 0 {
			w.Trace.Jobs[i].Spec.Share = sched.ShareNever
		}
		if len(w.Cluster.Types) > 1 && r.IntN(2) == 0 {
			w.Trace.Jobs[i].Spec.Types = sched.TypeSet(0).With(w.Cluster.Nodes[0].Type)
		}
	}
}

// Promise 17: ensure, for random states of random clusters under many systems, that a user who does what a remedy says
// has the job given GPUs by the very core that decides; and that where no narrower gang is offered, none of all that
// there are is given any.
func TestPromise17RemediesAreSound(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	taken, brute := map[whatif.Change]int{}, 0
	for seed := range seeds {
		for _, name := range []string{"fifo", "fifo-skip", "fifo-easy", "las", "srtf", "tiresias-las", "pal",
			"elastic-fifo", "fifo-packed", "gandiva"} {
			w, r := whatiftest.NewWorld(seed), rand.New(rand.NewPCG(seed, 17))
			makePicky(w, r)
			m, _ := cutAnywhere(t, w, name, r)
			if m == nil {
				continue
			}
			for id := range m.View().Jobs {
				j := sched.JobID(id)
				if job := m.View().Job(j); !job.Eligible() || len(job.Target) > 0 {
					continue
				}
				got, err := m.Remedies(t.Context(), j, whatif.RemedyOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got.Unchanged && !given(t, m, j) {
					t.Errorf("seed %d, %s, job %d is said to start by itself, and does not", seed, name, j)
				}
				for i := range got.List {
					x := &got.List[i]
					if taken[x.Change]++; !given(t, m, j, doing(m, j, x)...) {
						t.Errorf("seed %d, %s, job %d: %v to %+v gives it nothing", seed, name, j, x.Change,
							x.Spec.GPUs)
					}
				}
				if !got.Unchanged && !slices.ContainsFunc(got.List,
					func(x whatif.Remedy) bool { return x.Change == whatif.OtherGPUs }) {
					brute += noneNarrower(t, m, j, fmt.Sprintf("seed %d, %s", seed, name))
				}
			}
		}
	}
	t.Logf("%v taken, %d tried in vain", taken, brute)
	for _, c := range []whatif.Change{whatif.MoreTypes, whatif.OtherGPUs, whatif.HigherPriority} {
		if taken[c] < 10 && !testing.Short() {
			t.Errorf("%d remedies of kind %v: too few to mean anything", taken[c], c)
		}
	}
}

// noneNarrower tries all widths of job j and all ranges that start below its own, and returns how many.
func noneNarrower(t *testing.T, m *whatif.Moment, j sched.JobID, where string) (n int) {
	t.Helper()
	was := m.View().Job(j).Spec.GPUs
	for k := was.Min; k <= was.Max; k++ {
		for _, r := range []sched.Range{sched.Rigid(int(k)), {Min: was.Min, Want: k, Max: was.Max}} {
			if n++; r != was && given(t, m, j, resized(m, j, r)) {
				t.Errorf("%s, job %d of %v: no other width was offered, and %v would start", where, j, was, r)
			}
		}
	}
	for least := int32(1); least < was.Min; least++ {
		for want := least; want <= was.Want; want++ {
			most := want
			if was.Max > was.Min {
				most = was.Max
			}
			r := sched.Range{Min: least, Want: want, Max: most}
			if n++; given(t, m, j, resized(m, j, r)) {
				t.Errorf("%s, job %d of %v: no narrower gang was offered, and %v would start", where, j, was, r)
			}
		}
	}
	return n
}
