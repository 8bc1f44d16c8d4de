package manager_test

import (
	"context"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/store"
	"github.com/trainyard/trainyard/sched"
)

// reporter is a driver of jobs that all come at once and each report their progress so often, and then end.
type reporter struct {
	slots, jobs, reports int
	now                  sched.Time
	next                 []sched.Event
	reported             map[sched.JobID]int
	attempts             []sched.JobID // that run, in order of their start
}

func (r *reporter) Now() sched.Time { return r.now }

func (r *reporter) Sync(context.Context, *sched.View) ([]sched.Event, error) {
	spec := &sched.NodeSpec{Name: "here", Pool: sched.None, GPUs: r.slots}
	for _, d := range must(device.Slots(r.slots).List(context.Background())) {
		spec.Devices = append(spec.Devices, d.Name)
	}
	r.now = 1
	for range r.jobs {
		t := task.Task{Command: []string{"python", "train.py", "--lr", "0.1"}, Dir: "/home/someone/project",
			Grace: time.Minute}
		r.next = append(r.next, sched.Event{Kind: sched.JobArrived,
			Spec: &sched.JobSpec{Name: "j", GPUs: sched.Rigid(1), Task: t.Encode()}})
	}
	return []sched.Event{{Time: r.now, Kind: sched.NodeJoined, NodeSpec: spec}}, nil
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// Next says what was ordered, else one report of each that runs.
func (r *reporter) Next(context.Context, sched.Time) ([]sched.Event, error) {
	r.now += 1e9
	events := r.next
	r.next = nil
	if events == nil {
		events = r.progress()
	}
	if len(events) == 0 {
		return nil, io.EOF
	}
	for i := range events {
		e := &events[i]
		if e.Time = r.now; e.Spec != nil {
			e.Spec.Submit = r.now
		}
	}
	return events, nil
}

func (r *reporter) progress() (events []sched.Event) {
	running := r.attempts[:0]
	for _, id := range r.attempts {
		e := sched.Event{Kind: sched.Progressed, Job: id, Attempt: 1, Work: sched.Seconds(float64(r.reported[id])),
			Rate:  1,
			Value: float64(r.reported[id]), WorkFrom: r.now}
		if r.reported[id]++; r.reported[id] > r.reports {
			e = sched.Event{Kind: sched.AttemptEnded, Job: id, Attempt: 1, Outcome: sched.Finished, Work: e.Work}
		} else {
			running = append(running, id)
		}
		events = append(events, e)
	}
	r.attempts = running
	return events
}

func (r *reporter) Apply(_ context.Context, p sched.Plan) error {
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Kind == sched.Start {
			r.next = append(r.next, sched.Event{Kind: sched.AttemptStarted, Job: a.Job, Attempt: a.Attempt, Rate: 1,
				WorkFrom: r.now + 1e9})
			r.attempts = append(r.attempts, a.Job)
		}
	}
	return nil
}

// past writes a log of so many jobs, each with so many reports, into a folder.
func past(b testing.TB, o manager.Options, slots, jobs, reports int) (events uint64) {
	b.Helper()
	m, err := manager.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	h := m.Header()
	if err = m.Close(); err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(o.Dir)
	if err != nil {
		b.Fatal(err)
	}
	sys, err := manager.System(&h, o.Knows)
	if err != nil {
		b.Fatal(err)
	}
	last := sinkFunc(func(_ *sched.View, e *sched.Event) { events = e.Seq })
	d := &reporter{slots: slots, jobs: jobs, reports: reports, reported: make(map[sched.JobID]int)}
	if err := engine.Run(b.Context(), engine.NewState(h), d, sys.Decider,
		engine.Options{Sinks: []eventlog.Sink{s.Writer(0), last}}); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return events
}

// cpuSeconds is the CPU time of the process, user and system, garbage collection included.
func cpuSeconds() float64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// BenchmarkOpen is how long a manager takes to come back from a log: of 10,000 jobs that ended long ago, each of which
// has reported its progress so often.
func BenchmarkOpen(b *testing.B) {
	const slots, jobs = 64, 10_000
	for name, reports := range map[string]int{"events=50000": 0, "events=1050000": 100} {
		b.Run(name, func(b *testing.B) {
			o := manager.Options{Dir: b.TempDir() + "/state", Devices: device.Slots(slots), Place: "slots",
				Unit: "slot", System: "fifo"}
			n := past(b, o, slots, jobs, reports)
			b.ReportAllocs()
			began, times := cpuSeconds(), 0.0
			for ; b.Loop(); times++ {
				m, err := manager.Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				if m.LastEvent() != n {
					b.Fatalf("%d events, want %d", m.LastEvent(), n)
				}
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n), "events")
			b.ReportMetric((cpuSeconds()-began)/times, "cpu-s/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/event")
		})
	}
}
