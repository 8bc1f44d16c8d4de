package system_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that of each system it is known whether priorities of jobs change anything, under each order of those that
// take one: where they change nothing, submit says so.
func TestLooksAtPriority(t *testing.T) {
	for _, how := range []string{system.PriorityOwn, system.PriorityClasses, system.PriorityIgnored} {
		ofEach(t, how, func(info *system.Info, settings map[string]string) {
			h := eventlog.Header{System: info.Name, Settings: settings}
			reacts := !slices.Equal(finishes(t, info, settings, 0), finishes(t, info, settings, 3))
			if said := system.LooksAtPriority(&h); said != reacts {
				t.Errorf("%s %v: priorities change something: %v, want %v as said", info.Name, settings, reacts, said)
			}
		})
	}
}

// ranked is what a system makes of priorities.
type ranked struct {
	weighs  bool // classes are weights: a larger priority weighs more, and so does a longer wait
	last    bool // of equal jobs the last to arrive starts first
	settles bool // it keeps jobs that run as they are: no key has them give way
}

// rankings lists all systems.
var rankings = map[string]ranked{
	"fifo": {settles: true}, "fifo-skip": {settles: true}, "fifo-easy": {settles: true}, "sjf": {settles: true},
	"srtf": {}, "srsf": {}, "fewest-gpus": {}, "las": {}, "tiresias-las": {}, "tiresias-gittins": {},
	"pal": {}, "pm-first": {}, "packed": {}, "packed-sticky": {},
	"boa": {}, "boa-exact": {}, "equal-width": {},
	"eaco": {settles: true}, "fifo-packed": {settles: true}, "gandiva": {settles: true},
	"elastic": {}, "elastic-fifo": {}, "optimus": {}, "pollux": {}, "pollux-autoscale": {},
	"afs-l": {last: true}, // as published
	"worth": {weighs: true},
}

// Ensure that it is known of every system what it makes of priorities, and that it takes the keys for that.
func TestEverySystemRanks(t *testing.T) {
	if len(rankings) != len(system.Table()) {
		t.Errorf("%d rows for %d systems", len(rankings), len(system.Table()))
	}
	for _, info := range system.Table() {
		row, known := rankings[info.Name]
		if !known {
			t.Errorf("%s: want a row", info.Name)
			continue
		}
		keys := info.All()
		takes := func(k *key.Key) bool { return keys.Find(k.Name) != nil }
		if !takes(&system.Priority.Key) || takes(&system.PriorityAge.Key) == row.weighs ||
			takes(&system.PriorityPreempts.Key) == (row.weighs || row.settles) {
			t.Errorf("%s: keys %v, want those of %+v", info.Name, keys.Names(), row)
		}
		if bad := keys.Find(system.Priority.Name).Check(system.PriorityClasses); bad != nil {
			t.Errorf("%s: priority=classes: %v", info.Name, bad)
		}
	}
}

// ofEach calls f with each system, under each order of those that take one, and the value of the key priority; not with
// those that do not take it.
func ofEach(t *testing.T, priority string, f func(info *system.Info, settings map[string]string)) {
	t.Helper()
	for _, info := range system.Table() {
		keys, orders := info.All(), []string{""}
		if keys.Find(system.Order.Name) != nil {
			orders = keys.Find(system.Order.Name).Choices
		}
		if keys.Find(system.Priority.Name).Check(priority) != nil {
			continue
		}
		for _, order := range orders {
			settings := map[string]string{}
			if order != "" {
				settings[system.Order.Name] = order
			}
			if priority != system.PriorityOwn {
				settings[system.Priority.Name] = priority
			}
			f(&info, settings)
		}
	}
}

// arriving is a job that comes at so many seconds and runs for as many on one GPU.
func arriving(at, runs, priority int) trace.Job {
	length := time.Duration(runs) * time.Second
	return trace.Job{Duration: length, Spec: sched.JobSpec{Name: "j", User: "u", GPUs: sched.Rigid(1), Model: "m",
		Submit: sched.Time(at) * sched.Time(time.Second), Priority: int32(priority), WallTime: length, Epochs: 10}}
}

// Ensure that under priority=classes the job of the higher class starts first of two equal ones that wait, under every
// system, and so does that of the larger priority where it only weighs; under priority=ignore the one that came first,
// or last where that is the rule.
func TestHigherClassStartsFirst(t *testing.T) {
	for _, how := range []string{system.PriorityOwn, system.PriorityClasses, system.PriorityIgnored} {
		ofEach(t, how, func(info *system.Info, settings map[string]string) {
			row, first := rankings[info.Name], 2
			if how == system.PriorityOwn && !row.weighs {
				return // as its own order has it
			}
			if how == system.PriorityIgnored && !row.last {
				first = 1
			}
			jobs := play(t, info, settings, "1x1", arriving(0, 300, 0), arriving(10, 600, 0), arriving(10, 600, 1))
			if jobs[first].FirstStart >= jobs[3-first].FirstStart {
				t.Errorf("%s %v: start at %v and %v, want job %d first", info.Name, settings, jobs[1].FirstStart,
					jobs[2].FirstStart, first)
			}
		})
	}
}

// Ensure that jobs of a higher class are counted under each system that goes by classes: those alone that wait for
// GPUs, and those that have risen by waiting. None are under other values of the key.
func TestHigherClass(t *testing.T) {
	const day = 24 * time.Hour
	job := func(priority int32, arrived time.Duration, change func(*sched.Job)) sched.Job {
		j := sched.Job{Spec: &sched.JobSpec{Priority: priority}, State: sched.Waiting, Arrived: sched.Time(arrived)}
		if change != nil {
			change(&j)
		}
		return j
	}
	v := &sched.View{Now: sched.Time(10 * day), Jobs: []sched.Job{
		job(0, 10*day, nil), job(2, 10*day, nil), job(0, 8*day, nil), job(-1, 10*day, nil),
		job(9, 0, func(j *sched.Job) { j.Paused, j.State = true, sched.Held }),
		job(9, 0, func(j *sched.Job) { j.State, j.Attempt, j.Target = sched.Active, sched.Running, []sched.GPUID{0} }),
		job(9, 0, func(j *sched.Job) { j.State = sched.Done }),
		job(9, 0, func(j *sched.Job) { j.Target = []sched.GPUID{1} }),
	}}
	for _, how := range []string{system.PriorityOwn, system.PriorityClasses, system.PriorityIgnored} {
		ofEach(t, how, func(info *system.Info, settings map[string]string) {
			want := []int{2, 0, 0, 3, 0, 0, 0, 0}
			if how != system.PriorityClasses || rankings[info.Name].weighs {
				want = make([]int, len(want))
			}
			for id, n := range want {
				h := eventlog.Header{System: info.Name, Settings: settings}
				if got := system.HigherClass(&h, v, sched.JobID(id)); got != n {
					t.Errorf("%s %v: %d before job %d, want %d", info.Name, settings, got, id, n)
				}
			}
		})
	}
}

// Ensure that a job which waits behind a stream of those of a higher class starts when it has risen, and after all of
// them where none rises.
func TestNoClassStarves(t *testing.T) {
	list := []trace.Job{arriving(0, 600, 1), arriving(1, 600, 0)}
	for i := range 30 {
		list = append(list, arriving(2+300*i, 600, 1))
	}
	for age, by := range map[string][2]sched.Time{"3600": {3600e9, 4 * 3600e9}, "0": {30 * 600e9, sched.Never}} {
		ofEach(t, system.PriorityClasses, func(info *system.Info, settings map[string]string) {
			if rankings[info.Name].weighs {
				return
			}
			settings[system.PriorityAge.Name] = age
			jobs := play(t, info, settings, "1x1", list...)
			if at := jobs[1].FirstStart; at < by[0] || at > by[1] {
				t.Errorf("%s %v: starts at %v, want %v to %v", info.Name, settings, at, by[0], by[1])
			}
		})
	}
}

// Ensure that where priorities only weigh, a job behind a stream of those of a larger one starts before all of them are
// done.
func TestNoWeightStarves(t *testing.T) {
	list := []trace.Job{arriving(0, 7200, 1), arriving(1, 7200, 0)}
	for i := range 60 {
		list = append(list, arriving(2+3600*i, 7200, 1))
	}
	ofEach(t, system.PriorityOwn, func(info *system.Info, settings map[string]string) {
		if !rankings[info.Name].weighs {
			return
		}
		if at := play(t, info, settings, "1x1", list...)[1].FirstStart; at > 3*24*3600e9 {
			t.Errorf("%s: starts at %v, want three days at most", info.Name, at)
		}
	})
}

// Ensure that a running job gives way to one of a higher class with priority_preempts=yes, else only where the order of
// the system itself says so, and never to one of a lower class.
func TestRunningGivesWay(t *testing.T) {
	ofEach(t, system.PriorityClasses, func(info *system.Info, settings map[string]string) {
		if rankings[info.Name].weighs {
			return
		}
		stops := func(running, waiting trace.Job) int32 {
			return play(t, info, settings, "1x1", running, waiting)[0].Preemptions
		}
		if n := stops(arriving(0, 3000, 5), arriving(10, 600, 0)); n > 0 {
			t.Errorf("%s %v: gives way %d times to a lower class", info.Name, settings, n)
		}
		here, alike := stops(arriving(0, 3000, 0), arriving(10, 3000, 5)), stops(arriving(0, 3000, 0),
			arriving(10, 3000, 0))
		if here > alike {
			t.Errorf("%s %v: gives way %d times to a higher class, %d times to its own", info.Name, settings, here,
				alike)
		}
		if keys := info.All(); keys.Find(system.PriorityPreempts.Name) == nil {
			return
		}
		settings[system.PriorityPreempts.Name] = "yes"
		if n := stops(arriving(0, 3000, 0), arriving(10, 3000, 5)); n != 1 {
			t.Errorf("%s %v: gives way %d times to a higher class, want once", info.Name, settings, n)
		}
	})
}

// finishes returns when each job of twelve that come at once ends on two nodes, where every other has a priority.
func finishes(t *testing.T, info *system.Info, settings map[string]string, priority int32) []sched.Time {
	t.Helper()
	var list []trace.Job
	for i := range 12 {
		length := time.Duration(10+i%3) * time.Minute
		list = append(list, trace.Job{Duration: length, Spec: sched.JobSpec{Name: fmt.Sprint("j", i), User: "u",
			GPUs: sched.Rigid(2), Priority: int32(i%2) * priority, Model: "m", WallTime: length, Epochs: 10}})
	}
	var ends []sched.Time
	for _, j := range play(t, info, settings, "2x2", list...) {
		ends = append(ends, j.End)
	}
	return ends
}

// play returns what becomes of jobs under a system.
func play(t *testing.T, info *system.Info, settings map[string]string, on string, list ...trace.Job) []sched.Job {
	t.Helper()
	tr := &trace.Trace{Jobs: list}
	c, err := cluster.Load(on)
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := system.Knowledge{Work: tr.Oracle(), Scores: scores(), PerNode: 2, MostGPUs: 4, Budget: 4}
	sys, err := info.Build(known, key.NewSettings(settings), nil)
	if err != nil {
		t.Fatalf("%s: %v", info.Name, err)
	}
	state := engine.NewState(eventlog.Header{System: info.Name, ShareLimit: max(sys.ShareLimit, 1)})
	if err = engine.Run(t.Context(), state, d, sys.Decider, engine.Options{}); err != nil {
		t.Fatalf("%s: %v", info.Name, err)
	}
	return state.View().Jobs
}
