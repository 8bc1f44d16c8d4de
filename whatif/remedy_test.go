package whatif_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// remedies prints what would let a job start.
func remedies(t *testing.T, m *whatif.Moment, j sched.JobID, o whatif.RemedyOptions) string {
	t.Helper()
	r, err := m.Remedies(t.Context(), j, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Unchanged {
		return fmt.Sprintf("unchanged at %v", r.At)
	}
	var words []string
	for _, x := range r.List {
		s := x.Spec
		value := map[whatif.Change]any{whatif.MoreTypes: s.Types, whatif.ShorterWallTime: s.WallTime,
			whatif.AllowSharing: s.Share,
			whatif.OtherGPUs:    s.GPUs, whatif.HigherPriority: s.Priority, whatif.MoreBudget: x.Budget}[x.Change]
		text := fmt.Sprintf("%v=%v on %v", x.Change, value, x.GPUs)
		if x.Displaces != nil {
			text += fmt.Sprintf(" for %v", x.Displaces)
		}
		words = append(words, text)
	}
	return strings.Join(words, "; ")
}

// Ensure that each kind of remedy is found where it helps, and nothing where nothing does, in order of what it costs.
func TestRemedies(t *testing.T) {
	one := sched.TypeSet(0).With(0)
	shared := sched.JobSpec{GPUs: sched.Rigid(1), Share: sched.ShareAllow, Epochs: 10, Util: 0.2, Model: "resnet50",
		Deadline: 1e15}
	alone := shared
	alone.Share = sched.ShareNever
	for _, c := range []struct {
		name  string
		scene *whatiftest.Scene
		job   sched.JobID
		want  string
	}{
		{"a narrower gang fits", (&whatiftest.Scene{System: "fifo-skip"}).Node(4, 0).Job(100,
			sched.JobSpec{GPUs: sched.Rigid(2)}).Job(50, sched.JobSpec{GPUs: sched.Rigid(4)}), 1,
			"gpus={2 2 2} on [2 3]"},
		{"an elastic one starts with fewer, or in another's place",
			(&whatiftest.Scene{System: "elastic-fifo"}).Node(4, 0).
				Job(100, sched.JobSpec{GPUs: sched.Rigid(3)}).Job(50,
				sched.JobSpec{GPUs: sched.Range{Min: 2, Want: 2, Max: 4}}), 1,
			"gpus={1 1 4} on [3]; priority=1 on [0 1] for [0]"},
		{"nothing helps", (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(100,
			sched.JobSpec{GPUs: sched.Rigid(1)}).Job(50, sched.JobSpec{GPUs: sched.Rigid(1)}), 1, ""},
		{"another type is free, and half the gang fits on its own",
			(&whatiftest.Scene{System: "fifo-skip", Types: []string{"a", "b"}}).Node(2, 0).Node(2, 1).
				Job(100, sched.JobSpec{GPUs: sched.Rigid(1), Types: one}).Job(50,
				sched.JobSpec{GPUs: sched.Rigid(2), Types: one}), 1,
			"types=3 on [2 3]; gpus={1 1 1} on [1]"},
		{"behind a job that holds up the queue: only before its turn", (&whatiftest.Scene{System: "fifo"}).Node(2, 0).
			Job(100, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(100, sched.JobSpec{GPUs: sched.Rigid(2)}).Job(5,
			sched.JobSpec{GPUs: sched.Rigid(1)}), 2, "priority=1 on [1]"},
		{"the one before it, then, fits if narrower", (&whatiftest.Scene{System: "fifo"}).Node(2, 0).
			Job(100, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(100, sched.JobSpec{GPUs: sched.Rigid(2)}).Job(5,
			sched.JobSpec{GPUs: sched.Rigid(1)}), 1,
			"gpus={1 1 1} on [1]"},
		{"a gap is long enough for a job that promises to be over in time",
			(&whatiftest.Scene{System: "fifo-easy", Stated: true}).Node(2, 0).
				Job(100, sched.JobSpec{GPUs: sched.Rigid(1), WallTime: 100 * time.Second}).Job(50,
				sched.JobSpec{GPUs: sched.Rigid(2), WallTime: time.Minute}).
				Job(10, sched.JobSpec{GPUs: sched.Rigid(1), WallTime: 200 * time.Second}), 2,
			"wall_time=50s on [1]; priority=1 on [1]"},
		{"of a range whose speeds are not known, another width is free",
			(&whatiftest.Scene{System: "elastic"}).Node(4, 0).
				Job(100, sched.JobSpec{GPUs: sched.Rigid(2)}).Job(50,
				sched.JobSpec{GPUs: sched.Range{Min: 2, Want: 4, Max: 4}}), 1, "gpus={2 2 4} on [2 3]"},
		{"of a range a system takes the default alone", (&whatiftest.Scene{System: "fifo-skip"}).Node(4, 0).
			Job(100, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(50,
			sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 4, Max: 4}}), 1, "gpus={1 3 4} on [1 2 3]"},
		{"a wider one is possible only where it fits", (&whatiftest.Scene{System: "fifo-skip"}).Node(2, 0).
			Job(100, sched.JobSpec{GPUs: sched.Rigid(2)}).Job(50,
			sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 1, Max: 2}}), 1, ""},
		{"company is asked for", (&whatiftest.Scene{System: "gandiva"}).Node(1, 0).Job(100, shared).Job(50, alone), 1,
			"share=1 on [0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, m := c.scene.Moment(t)
			if got := remedies(t, m, c.job, whatif.RemedyOptions{}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Ensure that each remedy holds what it promises: a job that says so from the start of the fork is given GPUs, and one
// that is left as it is is not.
func TestRemediesHold(t *testing.T) {
	found := 0
	for seed := range uint64(25) {
		for _, name := range []string{"fifo", "fifo-skip", "las", "tiresias-las", "pal", "elastic-fifo", "eaco",
			"fifo-packed"} {
			w, r := whatiftest.NewWorld(seed), rand.New(rand.NewPCG(seed, 9))
			makePicky(w, r)
			m, _ := cutAnywhere(t, w, name, r)
			if m == nil {
				continue
			}
			for j := range m.View().Jobs {
				job := &m.View().Jobs[j]
				if !job.Eligible() || len(job.Target) > 0 {
					continue
				}
				got, err := m.Remedies(t.Context(), sched.JobID(j), whatif.RemedyOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range got.List {
					found++
					if len(x.GPUs) == 0 || !x.Spec.GPUs.Has(len(x.GPUs)) || x.Spec.Validate() != nil {
						t.Fatalf("seed %d, %s, job %d: %+v", seed, name, j, x)
					}
				}
				break
			}
		}
	}
	if t.Logf("%d remedies", found); found < 20 {
		t.Errorf("%d remedies in all: too few to mean anything", found)
	}
}

// Ensure that only a job that waits for the system can be asked about.
func TestRemediesOfWhom(t *testing.T) {
	_, m := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(100, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(9,
		sched.JobSpec{GPUs: sched.Rigid(1), NotBef: 50e9}).Moment(t)
	for j, want := range map[sched.JobID]string{0: "has 1 GPUs given", 1: "job 1 is held", 7: "no such job: job 7 of 2",
		-1: "no such job"} {
		if _, err := m.Remedies(t.Context(), j, whatif.RemedyOptions{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("job %d: %v, want %q", j, err, want)
		}
	}
}

// Ensure that the log says who displaced a job, what that cost, and when it was back.
func TestDisplacements(t *testing.T) {
	w, _ := (&whatiftest.Scene{System: "srtf"}).Node(1, 0).Job(100, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(5,
		sched.JobSpec{GPUs: sched.Rigid(1)}).Moment(t)
	w.Runtime.StopDelay = 2 * time.Second
	w.Runtime.Penalty = func(int) time.Duration { return 250 * time.Millisecond }
	fresh, _, _ := w.System("srtf")
	dec, _ := fresh()
	var d whatif.Displacements
	if err := engine.Run(t.Context(), engine.NewState(w.Header), w.Driver(t), dec,
		engine.Options{Sinks: []eventlog.Sink{&d}}); err != nil {
		t.Fatal(err)
	}
	want := whatif.Displacement{Job: 0, By: 1, Why: sched.WhyPreempted, At: 1e9, Lost: 250 * time.Millisecond,
		Back: 8e9}
	if got, ok := d.Of(0); !ok || got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, ok := d.Of(1); ok {
		t.Error("job 1 was displaced")
	}
}

// Ensure that what a stop cost is what was lost by it: by what is counted, not guessed, until it is known that the job
// went on, or another attempt has ended.
func TestDisplacementsCost(t *testing.T) {
	const s = time.Second
	over := sched.Event{Kind: sched.Saved, Code: sched.StartedOver}
	went := sched.Event{Kind: sched.Saved, Code: sched.WentOn}
	lost := sched.Event{Kind: sched.AttemptEnded, Outcome: sched.NodeLost, Work: 90 * s}
	for name, c := range map[string]struct {
		after []sched.Event
		want  time.Duration
	}{
		"kept":                      {nil, 10 * s},
		"went on":                   {[]sched.Event{went, over}, 10 * s},
		"started over":              {[]sched.Event{over, over}, 40 * s},
		"over after another end":    {[]sched.Event{went, lost, over}, 10 * s},
		"lost, then over, no proof": {[]sched.Event{lost, over}, 10 * s},
	} {
		var d whatif.Displacements
		v := sched.View{Jobs: []sched.Job{{Attempt: sched.Running, Work: 100 * s, GPUs: []sched.GPUID{0}}}}
		log := func(e sched.Event) { d.Log(&v, &e) }
		log(sched.Event{Kind: sched.Decided, Target: &sched.Target{At: sched.AtOnce}})
		log(sched.Event{Kind: sched.Ordered, Code: int32(sched.Stop)})
		log(sched.Event{Kind: sched.Progressed, Work: 40 * s}) // 100 s was a guess
		log(sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Preempted, Work: 30 * s})
		log(sched.Event{Kind: sched.AttemptStarted})
		for _, e := range c.after {
			log(e)
		}
		if got, _ := d.Of(0); got.Lost != c.want {
			t.Errorf("%s: %v lost, want %v", name, got.Lost, c.want)
		}
	}
}

// Ensure that a budget which is too small for a job to have a node hears how much would do, once its node has booted.
func TestBudgetRemedy(t *testing.T) {
	s := &whatiftest.Scene{System: "fifo", Pools: []cluster.Pool{{PoolSpec: sched.PoolSpec{Name: "spot", GPUs: 1,
		Max: 8, Price: 1, Boot: time.Second}}}, Budget: 2}
	for range 4 {
		s.Job(1000, sched.JobSpec{GPUs: sched.Rigid(1)})
	}
	w, m := s.Moment(t)
	o := whatif.RemedyOptions{Budget: 2, World: whatif.World{Pools: w.Cluster.Pools},
		Budgeted: func(gpus float64) whatif.System {
			more := *w
			more.Budget = gpus
			fresh, _, _ := more.System(s.System)
			return fresh
		}}
	if got, want := remedies(t, m, 2, o), "budget=3 on [2]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := remedies(t, m, 3, o), "budget=4 on [3]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
