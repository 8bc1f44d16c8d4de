package system_test

import (
	"cmp"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// partial is a driver of so many nodes of eight GPUs, of which starts fail on some. Jobs that come up run for 100 s.
type partial struct {
	nodes int
	jobs  []*sched.JobSpec
	fails func(a *sched.Action) []sched.GPUID // the suspects, nil = it comes up

	queue []sched.Event
	now   sched.Time
	tries map[sched.JobID]int
}

func (d *partial) Sync(context.Context, *sched.View) (events []sched.Event, err error) {
	d.tries = make(map[sched.JobID]int)
	for n := range d.nodes {
		events = append(events, sched.Event{Kind: sched.NodeJoined,
			NodeSpec: &sched.NodeSpec{Name: string(rune('a' + n)), GPUs: 8, Pool: sched.None}})
	}
	for _, s := range d.jobs {
		events = append(events, sched.Event{Kind: sched.JobArrived, Spec: s})
	}
	return events, nil
}

func (d *partial) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	// a job that does not start ticks on
	if len(d.queue) == 0 && until == sched.Never || d.now > sched.Time(24*time.Hour) {
		return nil, io.EOF
	}
	slices.SortStableFunc(d.queue, func(a, b sched.Event) int { return cmp.Compare(a.Time, b.Time) })
	if len(d.queue) == 0 || until < d.queue[0].Time {
		d.now = until
		return []sched.Event{{Time: until, Kind: sched.Ticked}}, nil
	}
	e := d.queue[0]
	d.now, d.queue = e.Time, d.queue[1:]
	return []sched.Event{e}, nil
}

func (d *partial) Apply(_ context.Context, p sched.Plan) error {
	for i := range p.Actions {
		a := &p.Actions[i]
		e := sched.Event{Time: d.now.Add(time.Second), Job: a.Job, Attempt: a.Attempt}
		switch suspects := []sched.GPUID(nil); {
		case a.Kind == sched.Stop:
			d.queue = slices.DeleteFunc(d.queue, func(e sched.Event) bool { return e.Job == a.Job })
			e.Kind, e.Outcome = sched.AttemptEnded, sched.Preempted
			d.queue = append(d.queue, e)
		case a.Kind != sched.Start:
		default:
			d.tries[a.Job]++
			if suspects = d.fails(a); suspects != nil {
				e.Kind, e.GPUs = sched.StartFailed, suspects
				d.queue = append(d.queue, e)
				continue
			}
			e.Kind, e.WorkFrom, e.Rate = sched.AttemptStarted, e.Time, 1
			over := e
			over.Kind, over.Outcome, over.Time, over.WorkFrom = sched.AttemptEnded, sched.Finished,
				e.Time.Add(100*time.Second), 0
			d.queue = append(d.queue, e, over)
		}
	}
	return nil
}

func (d *partial) Now() sched.Time { return d.now }

// each runs every system on a driver of its own until nothing happens any more: so many jobs are left then.
func each(t *testing.T, left int, make func() *partial, check func(t *testing.T, d *partial, s *engine.State)) {
	for _, info := range system.Table() {
		if info.Rents {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			d := make()
			tr := &trace.Trace{}
			for _, spec := range d.jobs {
				tr.Jobs = append(tr.Jobs, trace.Job{Spec: *spec, Duration: 100 * time.Second})
			}
			settings, err := system.LiveDefaults(info.Name, nil)
			if err != nil {
				t.Fatal(err)
			}
			sys, err := build(&info, tr, nil, settings)
			if err != nil {
				t.Fatal(err)
			}
			s := engine.NewState(eventlog.Header{ShareLimit: sys.ShareLimit})
			if err := engine.Run(t.Context(), s, d, sys.Decider, engine.Options{}); err != nil {
				t.Fatal(err)
			}
			live := 0
			for i := range s.View().Jobs {
				if s.View().Jobs[i].State != sched.Done {
					live++
				}
			}
			if live != left {
				t.Fatalf("%d jobs are left and nothing happens any more, want %d", live, left)
			}
			check(t, d, s)
		})
	}
}

func gangs(widths ...int) (specs []*sched.JobSpec) {
	for _, n := range widths {
		specs = append(specs, &sched.JobSpec{Name: "j", Model: "vgg16", GPUs: sched.Rigid(n)})
	}
	return specs
}

// Ensure that under every system a job whose start failed on a broken node is tried on another next, and that no one
// waits for that node.
func TestABrokenNodeIsLeftAlone(t *testing.T) {
	each(t, 0, func() *partial {
		return &partial{nodes: 3, jobs: gangs(1, 1, 1), fails: func(a *sched.Action) []sched.GPUID {
			if a.GPUs[0] < 8 {
				return slices.Clone(a.GPUs)
			}
			return nil
		}}
	}, func(t *testing.T, d *partial, s *engine.State) {
		for id, n := range d.tries {
			if end := s.View().Jobs[id].End; n > 2 || end > sched.Time(15*time.Minute) {
				t.Errorf("job %d was tried %d times and ended at %v", id, n, end)
			}
		}
	})
}

// Ensure that under every system a job that fits nowhere else starts once the GPUs have rested.
func TestWhoFitsNowhereElseStartsAfterTheRest(t *testing.T) {
	each(t, 0, func() *partial {
		failed := false
		return &partial{nodes: 1, jobs: gangs(8), fails: func(*sched.Action) []sched.GPUID {
			if !failed {
				failed = true
				return []sched.GPUID{3}
			}
			return nil
		}}
	}, func(t *testing.T, d *partial, s *engine.State) {
		if first := s.View().Jobs[0].FirstStart; d.tries[0] != 2 || first < sched.Time(5*time.Minute) {
			t.Errorf("%d tries, up at %v, want two, the second five minutes later", d.tries[0], first)
		}
	})
}

// Ensure that under every system a gang which fails wherever it starts takes no more than half of the cluster out of
// use, and that others do not wait for it.
func TestAJobToBlameDoesNotRestTheCluster(t *testing.T) {
	each(t, 1, func() *partial {
		return &partial{nodes: 2, jobs: gangs(16, 1, 2, 4), fails: func(a *sched.Action) []sched.GPUID {
			if a.Job != 0 {
				return nil
			}
			return slices.Clone(a.GPUs)
		}}
	}, func(t *testing.T, _ *partial, s *engine.State) {
		for id := 1; id <= 3; id++ {
			if end := s.View().Jobs[id].End; end > sched.Time(time.Hour) {
				t.Errorf("job %d ended at %v", id, end)
			}
		}
		if n := s.View().Capacity(); n != 8 {
			t.Errorf("%d GPUs are left in use, want half of the 16", n)
		}
	})
}
