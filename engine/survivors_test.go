package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// starts collects when each job was ordered to start, and stops when it was ordered to stop.
type starts struct{ start, stop map[sched.JobID][]sched.Time }

func newStarts() *starts {
	return &starts{map[sched.JobID][]sched.Time{}, map[sched.JobID][]sched.Time{}}
}

func (s *starts) Log(_ *sched.View, e *sched.Event) {
	switch {
	case e.Kind != sched.Ordered:
	case sched.ActionKind(e.Code) == sched.Start:
		s.start[e.Job] = append(s.start[e.Job], e.Time)
	case sched.ActionKind(e.Code) == sched.Stop:
		s.stop[e.Job] = append(s.stop[e.Job], e.Time)
	}
}

// want checks the times, in seconds, at which a job was started.
func (s *starts) want(t *testing.T, j sched.JobID, seconds ...float64) {
	t.Helper()
	var got []float64
	for _, at := range s.start[j] {
		got = append(got, at.Seconds())
	}
	if fmt.Sprint(got) != fmt.Sprint(seconds) {
		t.Errorf("job %d starts at %v s, want %v", j, got, seconds)
	}
}

// smallWorld is a cluster of nodes with the given numbers of GPUs.
func smallWorld(sizes ...int) *world {
	w := &world{types: []string{"a", "b"}}
	for i, n := range sizes {
		w.nodes = append(w.nodes, sched.NodeSpec{Name: fmt.Sprint("n", i), GPUs: n, Pool: sched.None})
	}
	return w
}

// job adds a job that arrives at, and runs for, so many seconds.
func (w *world) job(at float64, gpus int, runs float64, user string, priority int32) {
	spec := sched.JobSpec{Name: fmt.Sprint("j", len(w.jobs)), Submit: sched.Time(sched.Seconds(at)),
		GPUs: sched.Rigid(gpus), User: user, Priority: priority}
	w.jobs = append(w.jobs, trace.Job{Spec: spec, Duration: sched.Seconds(runs)})
}

// bothWalks runs the stages with the indices and with the plain walk.
func bothWalks(t *testing.T, w *world, stages func() pipeline.Stages, test func(*testing.T, *starts)) {
	for name, whole := range map[string]bool{"indexed": false, "whole pass": true} {
		t.Run(name, func(t *testing.T) {
			s, got := stages(), newStarts()
			s.WholePass = whole
			if _, err := w.run(pipeline.New(s), got, &checker{}); err != nil {
				t.Fatal(err)
			}
			test(t, got)
		})
	}
}

// Ensure that a victim is preempted at the very moment its protection ends, although nothing else happens then, whether
// it had started at once or after a delay, and that a second one follows when its own protection ends.
func TestPreemptsWhenProtectionEnds(t *testing.T) {
	for _, c := range []struct {
		name        string
		delay       time.Duration
		first, next float64
	}{{"at once", 0, 10, 13}, {"after a delay", 2 * time.Second, 12, 15}} {
		t.Run(c.name, func(t *testing.T) {
			w := smallWorld(1, 1)
			w.runtime.StartDelay = c.delay
			w.job(0, 1, 1000, "", 0)
			w.job(3, 1, 900, "", 0)
			w.job(4, 1, 50, "", 0)
			w.job(5, 1, 60, "", 0)
			stages := func() pipeline.Stages {
				oracle := (&trace.Trace{Jobs: w.jobs}).Oracle()
				return pipeline.Stages{Order: order.SRTF{Work: oracle}, Place: place.Count{}, Preempt: true,
					MinRun: 10 * time.Second}
			}
			bothWalks(t, w, stages, func(t *testing.T, s *starts) {
				for j, want := range map[sched.JobID]float64{0: c.first, 1: c.next} {
					if len(s.stop[j]) != 1 || s.stop[j][0].Seconds() != want {
						t.Errorf("job %d is stopped at %v, want once at %v s", j, s.stop[j], want)
					}
				}
				s.want(t, 2, c.first)
				s.want(t, 3, c.next)
			})
		})
	}
}

// Ensure that a job passed over because its user held too much starts at the very moment the user holds less: one of
// his jobs ends, is cancelled, or is preempted in the same walk, behind the job in the order.
func TestUserBelowTheLimitAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		more func(w *world)
		want float64
	}{
		{"a job ends", func(*world) {}, 40},
		{"a job is cancelled", func(w *world) {
			w.inject = append(w.inject, sched.Event{Time: 7 * second, Kind: sched.JobCommanded, Job: 0,
				Code: int32(sched.CancelJob)})
		}, 7},
		{"a job is paused", func(w *world) {
			w.inject = append(w.inject, sched.Event{Time: 7 * second, Kind: sched.JobCommanded, Job: 0,
				Code: int32(sched.PauseJob)},
				sched.Event{Time: 90 * second, Kind: sched.JobCommanded, Job: 0, Code: int32(sched.ResumeJob)})
		}, 7},
		{"a job is preempted", func(w *world) { w.job(5, 2, 100, "bob", 5) }, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := smallWorld(4)
			w.job(0, 2, 40, "ann", 0) // ann is at her limit
			w.job(0, 1, 300, "cy", 20)
			w.job(1, 1, 200, "ann", 10) // ranks above, and must wait although a GPU is free
			c.more(w)
			stages := func() pipeline.Stages {
				return pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}, Preempt: true, UserLimit: 2}
			}
			bothWalks(t, w, stages, func(t *testing.T, s *starts) { s.want(t, 2, c.want) })
		})
	}
}

// clumsy is a placer that gives the first job of two GPUs a set of two types, once.
type clumsy struct {
	place.Count
	erred *bool
}

func (c clumsy) Place(v *sched.View, l *sched.Ledger, j sched.JobID, n int, dst []sched.GPUID) ([]sched.GPUID, bool) {
	if n == 2 && !*c.erred {
		*c.erred = true
		return append(dst, 0, 2), true
	}
	return c.Count.Place(v, l, j, n, dst)
}

// Ensure that a job whose target is refused waits again, in front of those that came later, takes nothing from those
// that hold GPUs in its queue, and gets its GPUs when they are free.
func TestRefusedTurnWaitsAgain(t *testing.T) {
	w := smallWorld(2, 1)
	w.nodes[1].Type = 1
	w.job(0, 2, 30, "", 0)
	w.job(0, 1, 20, "", 0) // takes GPU 1 in the same walk
	w.job(1, 2, 30, "", 0)
	w.job(2, 2, 30, "", 0)
	for i := range w.jobs {
		w.jobs[i].Spec.Types = w.jobs[i].Spec.Types.With(0)
	}
	refused := 0
	count := sinkFunc(func(_ *sched.View, e *sched.Event) {
		if e.Kind == sched.Refused {
			refused++
		}
	})
	for name, whole := range map[string]bool{"indexed": false, "whole pass": true} {
		t.Run(name, func(t *testing.T) {
			refused = 0
			queues, err := order.NewMLFQ([]float64{1000}, false, 0, nil)
			must(err)
			s, got := pipeline.Stages{Order: queues, Place: clumsy{erred: new(bool)}, Preempt: true, WholePass: whole},
				newStarts()
			if _, err := w.run(pipeline.New(s), got, count, &checker{scripted: true}); err != nil {
				t.Fatal(err)
			}
			if refused != 1 {
				t.Errorf("%d targets were refused, want 1", refused)
			}
			got.want(t, 1, 0)
			got.want(t, 0, 20)
			got.want(t, 2, 50)
			got.want(t, 3, 80)
			if len(got.stop) != 0 {
				t.Errorf("stopped: %v, want no one", got.stop)
			}
		})
	}
}

// echo is a driver that reports ends, starts and nodes again: at once, and with each later batch.
type echo struct {
	sched.Driver
	past, out []sched.Event
}

func (d *echo) Sync(ctx context.Context, v *sched.View) ([]sched.Event, error) {
	events, err := d.Driver.Sync(ctx, v)
	return d.repeat(events), err
}

func (d *echo) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	events, err := d.Driver.Next(ctx, until)
	if err != nil {
		return nil, err
	}
	return d.repeat(events), nil
}

func (d *echo) repeat(events []sched.Event) []sched.Event {
	d.out = append(d.out[:0], events...)
	for _, e := range events {
		switch e.Kind {
		case sched.AttemptEnded, sched.AttemptStarted:
			d.past = append(d.past, e)
		case sched.NodeJoined:
			spec := *e.NodeSpec
			e.NodeSpec = &spec
			d.past = append(d.past, e)
		}
	}
	for _, e := range d.past {
		e.Time = events[0].Time
		d.out = append(d.out, e)
	}
	return d.out
}

// booked is how a job stands.
func booked(v *sched.View) (all []string) {
	for id := range v.Jobs {
		j := &v.Jobs[id]
		all = append(all, fmt.Sprint(id, j.State, j.Outcome, j.FirstStart, j.LastStart, j.End, j.Attempts,
			j.Preemptions, j.Work, j.Run, j.Service))
	}
	return append(all, fmt.Sprintf("%+v", v.Nodes))
}

// Ensure that reports that come again, at once and long after, from a driver that repeats itself change nothing.
func TestRepeatedReports(t *testing.T) {
	for seed := range uint64(cases(t, 200)) {
		w := newWorld(seed)
		if w.failing.MTBF > 0 { // a node that is away would come back at once
			continue
		}
		open := func() *sim.Driver {
			c := &cluster.Cluster{Name: "test", Nodes: w.nodes, Types: w.types, Racks: []string{"", "r1", "r2"}}
			d, err := sim.New(&trace.Trace{Jobs: w.jobs}, c, sim.Options{Runtime: w.runtime, Inject: w.inject})
			must(err)
			return d
		}
		var logs [2]hasher
		var ends [2][]string
		for i, d := range []sched.Driver{open(), &echo{Driver: open()}} {
			s := engine.NewState(eventlog.Header{})
			if err := engine.Run(t.Context(), s, d, pipeline.New(w.stages()),
				engine.Options{Sinks: []eventlog.Sink{&logs[i], &checker{}}}); err != nil {
				t.Fatalf("%v\n%v", w, err)
			}
			ends[i] = booked(s.View())
		}
		if logs[0] != logs[1] || !slices.Equal(ends[0], ends[1]) {
			t.Fatalf("%v\n%s", w, firstDifference(ends[0], ends[1]))
		}
	}
}

// Ensure that what a driver drops in repeating itself is reported with the reason.
func TestRepeatedReportsAreTold(t *testing.T) {
	w := smallWorld(1)
	w.job(0, 1, 5, "", 0)
	d, err := sim.New(&trace.Trace{Jobs: w.jobs}, &cluster.Cluster{Name: "test", Nodes: w.nodes, Types: w.types},
		sim.Options{})
	must(err)
	reported := map[sched.EventKind]int{}
	dropped := func(e *sched.Event, why string) {
		if reported[e.Kind]++; why == "" {
			t.Errorf("%v is dropped for no reason", e.Kind)
		}
	}
	if err := engine.Run(t.Context(), engine.NewState(eventlog.Header{}), &echo{Driver: d},
		pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}}),
		engine.Options{Dropped: dropped}); err != nil {
		t.Fatal(err)
	}
	for _, k := range []sched.EventKind{sched.NodeJoined, sched.AttemptStarted, sched.AttemptEnded} {
		if reported[k] == 0 {
			t.Errorf("no %v was dropped", k)
		}
	}
}

// Ensure that reports about what is not there, or cannot be true, neither panic nor change anything.
func TestImpossibleReports(t *testing.T) {
	w := smallWorld(1)
	w.job(0, 1, 5, "", 0)
	w.job(0, 1, 5, "", 0)
	for name, e := range map[string]sched.Event{
		"end of an attempt to come":          {Kind: sched.AttemptEnded, Job: 0, Attempt: 7, Outcome: sched.Finished},
		"end of no attempt":                  {Kind: sched.AttemptEnded, Job: 1, Outcome: sched.Finished},
		"end of a job that waits":            {Kind: sched.AttemptEnded, Job: 1, Attempt: 1, Outcome: sched.Finished},
		"start of a job that waits":          {Kind: sched.AttemptStarted, Job: 1, Attempt: 1},
		"failed start of a job that waits":   {Kind: sched.StartFailed, Job: 1, Attempt: 1},
		"failed start of one that runs":      {Kind: sched.StartFailed, Job: 0, Attempt: 9},
		"progress of a job that waits":       {Kind: sched.Progressed, Job: 1, Attempt: 1},
		"end of a job no one knows":          {Kind: sched.AttemptEnded, Job: 9, Attempt: 1, Outcome: sched.Finished},
		"start of a job no one knows":        {Kind: sched.AttemptStarted, Job: -1, Attempt: 1},
		"failed start of a job no one knows": {Kind: sched.StartFailed, Job: 9, Attempt: 1},
		"epoch of a job no one knows":        {Kind: sched.EpochEnded, Job: 9, Attempt: 1},
		"command about a job no one knows":   {Kind: sched.JobCommanded, Job: 9, Code: int32(sched.CancelJob)},
		"loss of a node no one knows":        {Kind: sched.NodeLeft, Node: 9, Code: int32(sched.NodeDown)},
		"change of a node no one knows":      {Kind: sched.NodeChanged, Node: -1, Code: int32(sched.NodeDraining)},
	} {
		t.Run(name, func(t *testing.T) {
			e.Time = 2 * second
			x := *w
			x.inject = []sched.Event{e}
			if e.Kind == sched.JobCommanded { // the simulation refuses it itself
				x.inject = nil
			}
			d, err := sim.New(&trace.Trace{Jobs: x.jobs},
				&cluster.Cluster{Name: "test", Nodes: x.nodes, Types: x.types}, sim.Options{Inject: x.inject})
			must(err)
			var driver sched.Driver = d
			if x.inject == nil {
				driver = &also{Driver: d, e: e}
			}
			dropped, got, s := 0, newStarts(), engine.NewState(eventlog.Header{})
			if err := engine.Run(t.Context(), s, driver,
				pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}}),
				engine.Options{Sinks: []eventlog.Sink{got, &checker{}}, Dropped: func(*sched.Event, string) {
					dropped++
				}}); err != nil {
				t.Fatal(err)
			}
			got.want(t, 0, 0)
			got.want(t, 1, 5)
			if v := s.View(); dropped != 1 || s.Live() != 0 || v.Now != 10*second {
				t.Errorf("%d dropped, %d jobs live, over at %v; want 1, 0 and 10 s", dropped, s.Live(), v.Now)
			}
		})
	}
}

// also is a driver that reports one event more, with its first report after the start.
type also struct {
	sched.Driver
	e        sched.Event
	reported bool
}

func (d *also) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	events, err := d.Driver.Next(ctx, until)
	if err == nil && !d.reported {
		d.reported, d.e.Time = true, events[0].Time
		events = append(slices.Clone(events), d.e)
	}
	return events, err
}

// stubborn is a driver of one node with one GPU, on which the first starts of every job fail at once.
type stubborn struct {
	now       sched.Time
	node      sched.NodeSpec
	spec      sched.JobSpec
	fails     int           // starts that fail before one goes well, and after each that went well
	runs      time.Duration // of an attempt that started, before it fails too or the job is done
	crashes   int           // attempts that run and then lose their node
	notBefore time.Duration // the driver's own request
	soon      []sched.Event
	end       *sched.Event
	failed    int
	times     []sched.Time // of failed starts
}

func (d *stubborn) Sync(context.Context, *sched.View) ([]sched.Event, error) {
	d.node, d.spec = sched.NodeSpec{Name: "n", GPUs: 1, Pool: sched.None}, sched.JobSpec{GPUs: sched.Rigid(1)}
	return []sched.Event{{Kind: sched.NodeJoined, NodeSpec: &d.node}, {Kind: sched.JobArrived, Spec: &d.spec}}, nil
}

func (d *stubborn) Now() sched.Time { return d.now }

func (d *stubborn) Next(_ context.Context, until sched.Time) ([]sched.Event, error) {
	switch {
	case len(d.soon) > 0:
		events := d.soon
		d.soon = nil
		return events, nil
	case d.end != nil && d.end.Time <= until:
		e := *d.end
		d.now, d.end = e.Time, nil
		return []sched.Event{e}, nil
	case until == sched.Never:
		return nil, io.EOF
	}
	d.now = max(d.now, until)
	return []sched.Event{{Time: d.now, Kind: sched.Ticked}}, nil
}

func (d *stubborn) Apply(_ context.Context, p sched.Plan) error {
	for _, a := range p.Actions {
		if a.Kind != sched.Start {
			return fmt.Errorf("action %d is not known here", a.Kind)
		}
		if len(d.times) > 1000 {
			return errors.New("a thousand starts failed")
		}
		if d.failed < d.fails {
			d.failed++
			d.times = append(d.times, d.now)
			e := sched.Event{Time: d.now, Kind: sched.StartFailed, Job: a.Job, Attempt: a.Attempt}
			if d.notBefore > 0 {
				e.WorkFrom = d.now.Add(d.notBefore)
			}
			d.soon = append(d.soon, e, e)
			continue
		}
		d.failed = 0
		d.soon = append(d.soon, sched.Event{Time: d.now, Kind: sched.AttemptStarted, Job: a.Job, Attempt: a.Attempt,
			WorkFrom: d.now, Rate: 1})
		d.end = &sched.Event{Time: d.now.Add(d.runs), Kind: sched.AttemptEnded, Job: a.Job, Attempt: a.Attempt,
			Outcome: sched.Finished, Work: d.runs}
		if d.crashes > 0 {
			d.crashes--
			d.end.Outcome = sched.NodeLost
		}
	}
	return nil
}

// gaps returns how long the job rested after each failed start, up to the next of the same series.
func (d *stubborn) gaps() (all []time.Duration) {
	for i := 1; i < len(d.times); i++ {
		all = append(all, d.times[i].Sub(d.times[i-1]))
	}
	return all
}

func (d *stubborn) run(t *testing.T) *sched.View {
	t.Helper()
	s := engine.NewState(eventlog.Header{})
	dec := pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}})
	if err := engine.Run(t.Context(), s, d, dec, engine.Options{Sinks: []eventlog.Sink{&checker{}}}); err != nil {
		t.Fatal(err)
	}
	if s.Live() != 0 || s.View().Jobs[0].Outcome != sched.Finished {
		t.Fatalf("job 0 is %v, %v", s.View().Jobs[0].State, s.View().Jobs[0].Outcome)
	}
	return s.View()
}

// Ensure that a job whose starts fail at once, each reported twice, rests a second, then twice as long each time up to
// some minutes, so that no run spins at one instant; and that it runs in the end.
func TestFailingStartsTakeTime(t *testing.T) {
	d := &stubborn{fails: 20, runs: 10 * time.Second}
	v := d.run(t)
	if v.Jobs[0].Attempts != 21 || len(d.times) != 20 {
		t.Errorf("%d attempts of which %d failed to start, want 21 and 20", v.Jobs[0].Attempts, len(d.times))
	}
	last := time.Duration(0)
	for i, gap := range d.gaps() {
		if want := time.Second << i; i < 8 && gap != want || gap < last || gap > time.Hour {
			t.Errorf("rests %v after failed start %d, %v after the one before", gap, i+1, last)
		}
		last = gap
	}
}

// Ensure that a driver which wants a longer rest gets it, and that a start which goes well is forgiven those before.
func TestFailingStartsBeginAnew(t *testing.T) {
	d := &stubborn{fails: 2, runs: time.Second, notBefore: 5 * time.Second}
	d.run(t)
	if g := d.gaps(); len(g) != 1 || g[0] != 5*time.Second {
		t.Errorf("rests %v, want the 5 s that the driver asks for", g)
	}
	d = &stubborn{fails: 3, runs: time.Second, crashes: 1}
	d.run(t)
	// 0, 1 and 3 s; it starts at 7 s and is lost at 8 s: 8, 9 and 11 s
	if got, want := fmt.Sprint(d.gaps()), "[1s 2s 5s 1s 2s]"; got != want {
		t.Errorf("rests %v, want %v", got, want)
	}
}
