package engine_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// runTwin runs w with the indexed or the whole-pass walk and returns the hash of its events.
func runTwin(w *world, whole bool, more ...eventlog.Sink) (hasher, error) {
	s := w.stages()
	s.WholePass = whole
	var h hasher
	_, err := w.run(pipeline.New(s), append(more, h.skipTicks(w))...)
	return h, err
}

// Under MinRun the plain walk may ask to be woken for victims that the indices know to be of no use, so wake-ups do not
// count there.
func (h *hasher) skipTicks(w *world) *hasher {
	h.ticks = w.system.minRun > 0 || w.system.guard != nil
	return h
}

func twinsDiffer(w *world) bool {
	a, errA := runTwin(w, false)
	b, errB := runTwin(w, true)
	return a != b || (errA == nil) != (errB == nil)
}

// Ensure that the walk through indices takes exactly the decisions of the walk written down plainly, on random worlds.
func TestWalkAgreesWithWholePass(t *testing.T) {
	for seed := range uint64(cases(t, 6000)) {
		checkTwins(t, newWorld(seed))
	}
}

// Ensure the same where many jobs wait, wide gangs among them, so that what is remembered of a misfit counts.
func TestCrowdAgreesWithWholePass(t *testing.T) {
	for seed := range uint64(cases(t, 300)) {
		checkTwins(t, newCrowd(seed))
	}
}

// Ensure the same where jobs of more widths wait than walks go through one by one, whether others are evicted or not.
func TestWidthsAgreeWithWholePass(t *testing.T) {
	for seed := range uint64(cases(t, 60)) {
		checkTwins(t, newWidths(seed, false))
		if seed%4 == 0 {
			checkTwins(t, newWidths(seed, true))
		}
	}
}

func checkTwins(t *testing.T, w *world) {
	t.Helper()
	if !twinsDiffer(w) {
		return
	}
	w = w.shrink(twinsDiffer)
	var a, b transcript
	_, errA := runTwin(w, false, &a)
	_, errB := runTwin(w, true, &b)
	t.Fatalf("%v\nerrors: indexed %v, whole pass %v\n%s", w, errA, errB, firstDifference(a.lines, b.lines))
}

// newCrowd draws a world of a dozen equal nodes and more jobs than they can hold, under a preemptive system.
func newCrowd(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 2))
	w := newWorld(seed)
	for more := seed; !w.system.preempt; { // the next whose system preempts
		more += 1 << 32
		w = newWorld(more)
	}
	w.types, w.nodes, w.jobs, w.inject, w.failing = w.types[:1], nil, nil, nil, cluster.Failures{}
	for i := range 12 {
		w.nodes = append(w.nodes, sched.NodeSpec{Name: fmt.Sprintf("n%02d", i), GPUs: 4, Pool: sched.None})
	}
	at := sched.Time(0)
	for i := range 150 {
		at += second * sched.Time(r.IntN(3))
		spec := sched.JobSpec{Name: fmt.Sprintf("j%03d", i), Submit: at,
			GPUs: sched.Rigid(pick(r, 1, 1, 1, 2, 4, 8, 12, 16, 20, 32)),
			User: pick(r, "ann", "bob"), Model: pick(r, "m", "vgg19")}
		w.jobs = append(w.jobs, trace.Job{Spec: spec, Duration: time.Second * time.Duration(pick(r, 2, 5, 10, 20, 60))})
	}
	return w
}

// newWidths draws a world of nodes of one or two types and of gangs of a hundred widths, many of which wait, under a
// system that reserves nothing and evicts others, or not.
func newWidths(seed uint64, preempt bool) *world {
	r := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(seed)
	for more := seed; w.system.preempt != preempt || w.system.admit != "" || w.system.keepOrder; {
		more += 1 << 32
		w = newWorld(more)
	}
	w.jobs, w.inject, w.pools, w.share = nil, nil, nil, 0
	for i := range w.nodes {
		w.nodes[i].GPUs *= 8
	}
	at := sched.Time(0)
	for i := range 400 {
		at += second * sched.Time(r.IntN(4)*r.IntN(2))
		spec := sched.JobSpec{Name: fmt.Sprintf("j%03d", i), Submit: at, GPUs: sched.Rigid(1 + r.IntN(1+r.IntN(100))),
			User: pick(r, "ann", "bob"), Model: pick(r, "m", "vgg19"), Types: sched.TypeSet(r.IntN(1 << len(w.types)))}
		w.jobs = append(w.jobs, trace.Job{Spec: spec, Duration: time.Second * time.Duration(pick(r, 2, 5, 10, 20, 60))})
	}
	return w
}

// Ensure that other names for users, models, nodes and jobs give the same plans.
func TestRelabelling(t *testing.T) {
	for seed := range uint64(cases(t, 300)) {
		w := newWorld(seed)
		x := *w
		x.jobs, x.nodes = slices.Clone(w.jobs), slices.Clone(w.nodes)
		users := map[string]string{"": "", "ann": "zoe", "bob": "ann", "cy": "x"}
		for i := range x.jobs {
			s := &x.jobs[i].Spec
			s.Name, s.User = "r"+s.Name, users[s.User]
		}
		for i := range x.nodes {
			x.nodes[i].Name = "r" + x.nodes[i].Name
		}
		a, _ := runTwin(w, false)
		if b, _ := runTwin(&x, false); a != b {
			t.Fatalf("the plan changes with the names:\n%v", w)
		}
	}
}

// Ensure that equal worlds give equal events, twice in a row.
func TestSameWorldSameEvents(t *testing.T) {
	for seed := range uint64(cases(t, 300)) {
		a, _ := runTwin(newWorld(seed), false)
		if b, _ := runTwin(newWorld(seed), false); a != b || a.n == 0 {
			t.Fatalf("seed %d: %v, then %v", seed, a, b)
		}
	}
}

// Ensure that a quiet round allocates nothing, and a steady stream of arrivals and ends next to nothing.
func TestAllocations(t *testing.T) {
	for _, name := range []string{"fifo", "srsf", "las", "mlfq", "gittins"} {
		w := steadyWorld(name)
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			quiet, n := -1.0, 0
			p := pipeline.New(w.stages())
			sink := sinkFunc(func(v *sched.View, e *sched.Event) {
				switch n++; {
				case n == 15000:
					runtime.ReadMemStats(&before)
				case n == 19000:
					runtime.ReadMemStats(&after)
				}
			})
			tap := &tapped{p, func(v *sched.View, d *sched.Desired) {
				if len(v.Jobs) == 4000 && quiet < 0 && d.Empty() {
					quiet = testing.AllocsPerRun(10, func() { d.Reset(); p.Decide(v, d) })
				}
			}}
			if _, err := w.run(tap, sink); err != nil {
				t.Fatal(err)
			}
			if quiet != 0 {
				t.Errorf("%v allocations in a quiet round, want none", quiet)
			}
			if per := float64(after.Mallocs-before.Mallocs) / 4000; n < 19000 || per > 0.1 {
				t.Errorf("%.3f allocations per event of %d, want next to none", per, n)
			}
		})
	}
}

// tapped is a Pipeline whose decisions someone looks at.
type tapped struct {
	*pipeline.Pipeline
	look func(*sched.View, *sched.Desired)
}

func (t *tapped) Decide(v *sched.View, d *sched.Desired) {
	t.Pipeline.Decide(v, d)
	t.look(v, d)
}

// steadyWorld is a cluster under a stream of small jobs that it can just carry.
func steadyWorld(order string) *world {
	w := &world{types: []string{"a"}, system: systemCase{order: order, place: "consolidate", preempt: order != "fifo",
		limits: []float64{5, 20}}}
	if order == "las" {
		w.system.quantum = 10 * time.Second
	}
	for range 4 {
		w.nodes = append(w.nodes, sched.NodeSpec{Name: fmt.Sprint("n", len(w.nodes)), GPUs: 4, Pool: sched.None})
	}
	for i := range 4500 {
		spec := sched.JobSpec{Submit: second * sched.Time(i), GPUs: sched.Rigid(1 << (i % 3))}
		w.jobs = append(w.jobs, trace.Job{Spec: spec, Duration: time.Second * time.Duration(3+i%5)})
	}
	return w
}
