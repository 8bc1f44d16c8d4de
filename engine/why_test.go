package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/admit"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// asker is a Sink that asks ask after every instant.
type asker struct {
	v   *sched.View
	ask func(v *sched.View) error
}

func (a *asker) Log(v *sched.View, _ *sched.Event) { a.v = v }
func (a *asker) BeginBatch()                       {}
func (a *asker) EndBatch() error                   { return a.ask(a.v) }

// gang is a job that arrives at a time in seconds, of so many GPUs, and takes 100 s unless it says otherwise.
func gang(at, gpus int, change ...func(*sched.JobSpec)) trace.Job {
	s := sched.JobSpec{Submit: sched.Time(at) * second, GPUs: sched.Rigid(gpus)}
	for _, f := range change {
		f(&s)
	}
	return trace.Job{Spec: s, Duration: 100 * time.Second}
}

func by(user string) func(*sched.JobSpec) { return func(s *sched.JobSpec) { s.User = user } }

// stingy is an Allocator that grants the first job alone.
type stingy struct{}

func (stingy) Allocate(v *sched.View, _ []int32, order []sched.JobID, _ *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	for _, id := range order[:min(len(order), 1)] {
		n := v.Jobs[id].Spec.GPUs.Want
		dst = append(dst, sched.Grant{Job: id, GPUs: n, Least: n})
	}
	return dst
}

var plainFIFO = pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}}

// Ensure, one case for each constraint, that a waiting job gets the one that binds, and its numbers. The cluster has
// two nodes of 4 GPUs; the last job is asked about after the last event at or before 5 s.
func TestWhy(t *testing.T) {
	las := pipeline.Stages{Order: order.LAS{}, Place: place.Count{}, Preempt: true, Quantum: 10 * time.Second,
		MinRun: 60 * time.Second}
	command := func(at sched.Time, j sched.JobID, c sched.Command) sched.Event {
		return sched.Event{Time: at * second, Kind: sched.JobCommanded, Job: j, Code: int32(c)}
	}
	oracle := func(jobs ...trace.Job) trace.Oracle { return (&trace.Trace{Jobs: jobs}).Oracle() }
	easy := func(jobs ...trace.Job) pipeline.Stages {
		return pipeline.Stages{Order: order.FIFO{}, Place: place.Count{},
			Admit: &admit.Easy{Work: oracle(jobs...), Place: place.Count{}}}
	}
	with := func(s pipeline.Stages, f func(*pipeline.Stages)) pipeline.Stages { f(&s); return s }
	backfill := []trace.Job{gang(0, 6), gang(1, 8), gang(2, 2, by("slow"))}
	backfill[2].Duration = 300 * time.Second
	for _, c := range []struct {
		name   string
		stages pipeline.Stages
		jobs   []trace.Job
		inject []sched.Event
		cpus   float32 // of each node
		rt     sim.Runtime
		pools  []sched.PoolSpec
		want   string
	}{
		{name: "runs", stages: plainFIFO, jobs: []trace.Job{gang(0, 1)}, want: "{}"},
		{name: "starts", stages: plainFIFO, jobs: []trace.Job{gang(0, 1)}, rt: sim.Runtime{StartDelay: 9 * time.Second},
			want: "{starts}"},
		{name: "stops, requeued", stages: plainFIFO, jobs: []trace.Job{gang(0, 1)},
			inject: []sched.Event{command(4, 0, sched.RequeueJob)},
			rt:     sim.Runtime{StopDelay: 9 * time.Second}, want: "{stops}"},
		{name: "stops, cancelled", stages: plainFIFO, jobs: []trace.Job{gang(0, 1)},
			inject: []sched.Event{command(4, 0, sched.CancelJob)},
			rt:     sim.Runtime{StopDelay: 9 * time.Second}, want: "{stops}"},
		{name: "freeing", stages: plainFIFO, jobs: []trace.Job{gang(0, 8), gang(1, 6)},
			inject: []sched.Event{command(4, 0, sched.CancelJob)},
			rt:     sim.Runtime{StopDelay: 9 * time.Second}, want: "{freeing jobs [0] gpus [0 1 2 3 4 5]}"},
		{name: "paused", stages: plainFIFO, jobs: []trace.Job{gang(0, 1)},
			inject: []sched.Event{command(4, 0, sched.PauseJob)}, want: "{paused}"},
		{name: "after", stages: plainFIFO,
			jobs: []trace.Job{gang(0, 1), gang(0, 1), gang(0, 1, func(s *sched.JobSpec) {
				s.After = []sched.JobID{0, 1}
			})},
			inject: []sched.Event{command(3, 0, sched.CancelJob)}, want: "{after jobs [1]}"},
		{name: "array", stages: plainFIFO, jobs: []trace.Job{task(0), task(1), task(2), task(3)},
			want: "{array limit 2 jobs [0 1]}"},
		{name: "until", stages: plainFIFO,
			jobs: []trace.Job{gang(0, 1, func(s *sched.JobSpec) { s.NotBef = 77 * second })}, want: "{until 77s}"},
		{name: "too wide", stages: plainFIFO, jobs: []trace.Job{gang(0, 2), gang(1, 9)},
			want: "{too-wide need 9 have 8 largest 4}"},
		{name: "quota", stages: with(plainFIFO, func(s *pipeline.Stages) { s.UserLimit = 3 }),
			jobs: []trace.Job{gang(0, 1, by("bob")), gang(0, 2, by("ann")), gang(1, 2, by("ann"))},
			want: "{quota need 2 have 2 limit 3 largest 4 jobs [1]}"},
		{name: "rented", stages: plainFIFO, jobs: []trace.Job{gang(0, 10)},
			pools: []sched.PoolSpec{{GPUs: 2, Max: 1, Price: 1}},
			want:  "{rented need 10 have 8 largest 4}"},
		{name: "unusable", stages: plainFIFO, jobs: []trace.Job{gang(0, 1), gang(3, 7)}, inject: []sched.Event{
			{Time: second, Kind: sched.GPUChanged, Value: 7, Code: int32(sched.GPUForeign)},
			{Time: second, Kind: sched.GPUChanged, Value: 6, Code: int32(sched.GPUStuck)}},
			want: "{unusable need 7 have 6 largest 3 gpus [6 7]}"},
		{name: "never fits", stages: with(plainFIFO, func(s *pipeline.Stages) { s.Place = place.Packed{} }), cpus: 4,
			jobs: []trace.Job{gang(0, 5, func(s *sched.JobSpec) {
				s.CPUs = 2
			})}, want: "{never-fits need 5 have 8 largest 4}"},
		{name: "behind", stages: with(plainFIFO, func(s *pipeline.Stages) { s.Admit = admit.Stop{} }),
			jobs: []trace.Job{gang(0, 6), gang(1, 3), gang(2, 4), gang(3, 1)}, want: "{behind need 1 have 2 largest " +
				"2 jobs [1] ahead [1 2]}"},
		{name: "busy", stages: plainFIFO, jobs: []trace.Job{gang(0, 4), gang(1, 3), gang(2, 5), gang(3, 2)},
			want: "{busy need 2 have 1 largest 1 jobs [0 1] ahead [2]}"},
		{name: "busy, protected", stages: las, jobs: []trace.Job{gang(0, 4), gang(1, 3), gang(3, 2)},
			want: "{busy need 2 have 1 largest 1 until 60s jobs [1 0]}"},
		{name: "fragmented", stages: with(plainFIFO, func(s *pipeline.Stages) { s.Place = place.Consolidate{} }),
			jobs: []trace.Job{gang(0, 2), gang(0, 3), gang(2, 3)}, want: "{fragmented need 3 have 3 largest 2}"},
		{name: "reserved", stages: easy(backfill...), jobs: backfill, want: "{reserved need 2 have 2 largest 2 jobs " +
			"[1] ahead [1]}"},
		{name: "ungranted", stages: with(plainFIFO, func(s *pipeline.Stages) { s.Allocate = stingy{} }),
			jobs: []trace.Job{gang(0, 1), gang(0, 2)}, want: "{ungranted need 2 have 7 largest 4}"},
		{name: "undecided", stages: with(plainFIFO, func(s *pipeline.Stages) { s.Round = 30 * time.Second }),
			jobs: []trace.Job{gang(0, 1), gang(4, 2)}, want: "{undecided need 2 have 7 largest 4 until 30s}"},
		{name: "not divided since it came",
			stages: with(plainFIFO, func(s *pipeline.Stages) { s.Allocate, s.Round = stingy{}, 30*time.Second }),
			jobs:   []trace.Job{gang(4, 2)}, want: "{undecided need 2 have 8 largest 4 until 30s}"},
		{name: "not granted in a round",
			stages: with(plainFIFO, func(s *pipeline.Stages) { s.Allocate, s.Round = stingy{}, 30*time.Second }),
			jobs:   []trace.Job{gang(0, 1), gang(0, 2)}, want: "{ungranted need 2 have 7 largest 4}"},
	} {
		w := &world{jobs: c.jobs, inject: c.inject, types: []string{"a"}, runtime: c.rt, pools: c.pools}
		for i := range 2 {
			w.nodes = append(w.nodes, sched.NodeSpec{Name: fmt.Sprint(i), GPUs: 4, CPUs: c.cpus, Pool: sched.None})
		}
		if got := w.why(t, c.stages); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Ensure that of a Decider that is not made of Stages the view alone explains.
func TestWhyOfTheViewAlone(t *testing.T) {
	spec := &sched.JobSpec{GPUs: sched.Range{Min: 2, Want: 4, Max: 8}}
	for _, c := range []struct {
		gpus int
		job  sched.Job
		want string
	}{
		{4, sched.Job{State: sched.Waiting}, "{system need 2 have 4 largest 4}"},
		{1, sched.Job{State: sched.Waiting}, "{too-wide need 2 have 1 largest 1}"},
		{4, sched.Job{State: sched.Held, NotBefore: 9 * second}, "{retry until 9s}"},
		{4, sched.Job{State: sched.Active, Attempt: sched.Running}, "{}"},
		{4, sched.Job{State: sched.Done}, "{}"},
	} {
		c.job.Spec = spec
		v := &sched.View{Jobs: []sched.Job{c.job},
			Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: c.gpus, Pool: sched.None}}},
			GPUs:  make([]sched.GPU, c.gpus)}
		if got := show(pipeline.Why(v, &sharer{}, 0)); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// why returns why the last job waits after the last event at or before 5 s.
func (w *world) why(t *testing.T, s pipeline.Stages) (text string) {
	t.Helper()
	dec := s.Decider()
	a := &asker{ask: func(v *sched.View) error {
		if v.Now <= 5*second && len(v.Jobs) == len(w.jobs) {
			text = show(pipeline.Why(v, dec, sched.JobID(len(v.Jobs)-1)))
		}
		return nil
	}}
	c := &cluster.Cluster{Nodes: w.nodes, Types: w.types, Racks: []string{""}}
	d, err := sim.New(&trace.Trace{Jobs: w.jobs}, c, sim.Options{Runtime: w.runtime, Inject: w.inject})
	must(err)
	if err := engine.Run(t.Context(), engine.NewState(w.header()), d, dec,
		engine.Options{Sinks: []eventlog.Sink{a}}); err != nil {
		t.Fatal(err)
	}
	return text
}

// show prints what is set of w.
func show(w explain.Waiting) string {
	s := "{" + w.Code.String()
	for _, f := range []struct {
		name string
		x    int32
	}{{"need", w.Need}, {"have", w.Have}, {"limit", w.Limit}, {"largest", w.Largest}} {
		if f.x != 0 {
			s += fmt.Sprintf(" %s %d", f.name, f.x)
		}
	}
	if w.Until != 0 && w.Code != explain.WaitUntil {
		s += " until"
	}
	if w.Until != 0 {
		s += fmt.Sprintf(" %v", w.Until)
	}
	if w.Jobs != nil {
		s += fmt.Sprintf(" jobs %v", w.Jobs)
	}
	if w.GPUs != nil {
		s += fmt.Sprintf(" gpus %v", w.GPUs)
	}
	if len(w.Ahead) > 0 {
		s += fmt.Sprintf(" ahead %v", w.Ahead)
	}
	return s + "}"
}

// Ensure, after every instant of random worlds, that every job that waits gets one constraint, that it is true of the
// view by a plain count, and that asking changes nothing of the run.
func TestWhyIsTrue(t *testing.T) {
	seen := map[explain.Code]int{}
	for seed := range uint64(cases(t, 600)) {
		w := newWorld(seed)
		if seed%5 == 4 {
			w = newElastic(seed)
		}
		p := pipeline.New(w.stages())
		b := hasher{}
		a := &asker{ask: func(v *sched.View) error {
			for id := range v.Jobs {
				p.Explain(v, sched.JobID(id), func(sched.Fact) {})
				x := pipeline.Why(v, p, sched.JobID(id))
				seen[x.Code]++
				brief := pipeline.NewBrief(v, p).Counted(sched.JobID(id))
				if want := counted(x); !reflect.DeepEqual(brief, want) {
					return fmt.Errorf("%v: job %d: counted %+v, want %+v", v.Now, id, brief, want)
				}
				if untrue := w.untrue(v, sched.JobID(id), x); untrue != "" {
					return fmt.Errorf("%v: job %d %v/%v target %v: %s: %s", v.Now, id, v.Jobs[id].State,
						v.Jobs[id].Attempt, v.Jobs[id].Target, show(x), untrue)
				}
			}
			return nil
		}}
		_, err := w.run(p, a, b.skipTicks(w))
		if err != nil {
			t.Fatalf("%v\n%v", w, err)
		}
		if plain, _ := runTwin(w, false); plain != b {
			t.Fatalf("seed %d: asking changed the run", seed)
		}
	}
	for code := explain.NotWaiting; code < explain.WaitSystem; code++ {
		if seen[code] == 0 && !testing.Short() && code != explain.WaitRetry && code != explain.WaitArray {
			t.Errorf("no job waited by %q", code)
		}
	}
}

// counted is what Brief.Counted is to say where the function Why says x.
func counted(x explain.Waiting) explain.Waiting {
	x.Before, x.Ahead = int32(len(x.Ahead)), nil
	if x.Code == explain.WaitBusy {
		x.Jobs, x.Until = nil, 0
	}
	return x
}

// untrue says what of x does not hold of job id after a decision, "" if all does.
func (w *world) untrue(v *sched.View, id sched.JobID, x explain.Waiting) string {
	j := &v.Jobs[id]
	runs := j.State == sched.Done || j.Attempt == sched.Running
	if (x.Code == explain.NotWaiting) != runs {
		return "a job waits iff it neither runs nor is done"
	}
	free, usable, there := 0, 0, 0
	for g := range v.GPUs {
		n := &v.Nodes[v.GPUs[g].Node]
		if !j.Spec.Types.Has(n.Spec.Type) || n.Spec.Type != x.Type || n.State == sched.NodeGone {
			continue
		}
		there++
		if v.Usable(sched.GPUID(g)) {
			usable++
			if !slices.ContainsFunc(v.Jobs,
				func(o sched.Job) bool { return slices.Contains(o.Target, sched.GPUID(g)) }) {
				free++
			}
		}
	}
	user := 0
	for i := range v.Jobs {
		if v.Jobs[i].Spec.User == j.Spec.User {
			user += len(v.Jobs[i].Target)
		}
	}
	s, n := w.stages(), int(x.Need)
	fits := func(k sched.JobID, n int) bool { return s.Place.Fits(v, sched.NewLedger(v), k, n) }
	is := func(ok bool) string {
		if ok {
			return ""
		}
		return fmt.Sprintf("not so: %d there, %d usable, %d free, its user has %d", there, usable, free, user)
	}
	if x.Code >= explain.WaitTooWide && (!j.Eligible() || len(j.Target) > 0) {
		return "it may not be given GPUs, or has some"
	}
	switch x.Code {
	case explain.WaitStarts:
		return is(j.Attempt == sched.Starting)
	case explain.WaitStops:
		return is(j.Attempt == sched.Stopping)
	case explain.WaitFreeing:
		return is(len(x.Jobs) > 0 && !slices.ContainsFunc(x.Jobs, func(o sched.JobID) bool {
			return v.Jobs[o].Attempt != sched.Stopping
		}))
	case explain.WaitPaused:
		return is(j.Paused)
	case explain.WaitAfter:
		return is(len(x.Jobs) == int(j.BlockedBy()) && x.Jobs != nil)
	case explain.WaitUntil, explain.WaitRetry:
		return is(j.State == sched.Held && x.Until >= v.Now && j.BlockedBy() == 0)
	case explain.WaitTooWide:
		return is(there < n && len(v.Pools) == 0 || there <= int(x.Have) && int(x.Have) < n)
	case explain.WaitQuota:
		return is(user == int(x.Have) && user+n > w.system.userLimit && w.system.userLimit > 0)
	case explain.WaitRented:
		return is(there == int(x.Have) && there < n && len(v.Pools) > 0)
	case explain.WaitUnusable:
		return is(usable == int(x.Have) && usable < n && n <= there && len(x.GPUs) == there-usable)
	case explain.WaitNeverFits:
		return is(usable >= n && !fits(id, n))
	case explain.WaitBehind:
		return is(w.system.admit == "stop" && len(x.Ahead) > 0 && slices.Contains(x.Ahead, x.Jobs[0]) &&
			!fits(x.Jobs[0], int(v.Jobs[x.Jobs[0]].Spec.GPUs.Want)))
	case explain.WaitBusy:
		return is(free == int(x.Have) && free < n && n <= usable && len(x.Jobs) > 0 &&
			(x.Until == 0 || x.Until > v.Now && (w.system.minRun > 0 || w.system.guard != nil)))
	case explain.WaitFragmented:
		return is(free == int(x.Have) && free >= n && !fits(id, n))
	case explain.WaitReserved:
		return is(w.system.admit == "easy" && fits(id, n) && slices.Contains(x.Ahead, x.Jobs[0]) &&
			!fits(x.Jobs[0], int(v.Jobs[x.Jobs[0]].Spec.GPUs.Want)))
	case explain.WaitUngranted:
		return is(s.Allocate != nil && fits(id, n))
	case explain.WaitUndecided:
		return is(fits(id, n) && x.Until > v.Now)
	case explain.WaitSystem:
		return "a pipeline has a reason"
	}
	return ""
}

// BenchmarkWhy asks about the last of 10,000 jobs, on 1,000 GPUs.
func BenchmarkWhy(b *testing.B) {
	w := &world{types: []string{"a"}}
	for i := range 250 {
		w.nodes = append(w.nodes, sched.NodeSpec{Name: fmt.Sprint(i), GPUs: 4, Pool: sched.None})
	}
	for i := range 10_000 {
		w.jobs = append(w.jobs, gang(0, 1+i%8))
	}
	p := pipeline.New(pipeline.Stages{Order: order.LAS{}, Place: place.Packed{}, Preempt: true})
	asked := false
	_, err := w.run(p, &asker{ask: func(v *sched.View) error {
		if asked || len(v.Jobs) == 0 {
			return nil
		}
		for b.Loop() {
			pipeline.Why(v, p, 9_999)
		}
		asked = true
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
}
