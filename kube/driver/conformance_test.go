package driver

import (
	"context"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/driver/drivertest"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the driver does what is asked of any, in each mode.
func TestConformance(t *testing.T) {
	t.Parallel()
	short, long := 500*time.Millisecond, 1500*time.Millisecond
	drivertest.Run(t, func(t *testing.T) (sched.Driver, drivertest.Bench) {
		jobs := []client.Object{objects.Job("a-endless", 1, nil),
			objects.Job("b-short", 1, map[string]string{lifetime: "200ms"}), objects.Job("c-endless", 1, nil)}
		c := newCluster(t, objects.Node("a", 2)...)
		o := options(c)
		o.Origin = time.Now()
		d := New(o)
		quit, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			for {
				select {
				case <-quit:
					return
				case <-time.After(5 * time.Millisecond):
					c.tick()
				}
			}
		}()
		t.Cleanup(func() { close(quit); <-over; d.Close() })
		return &Folding{Driver: d, API: c, Jobs: jobs,
				State: engine.NewState(eventlog.Header{Types: []string{"V100"}, ShareLimit: 1})},
			drivertest.Bench{Short: short, Long: long, Endless: true}
	})
}

// Folding plays the part of the engine that the conformance suite leaves out: it keeps the View in step, which the
// driver looks at. The events that the suite sees are the driver's; the orders that an engine would not give do not
// reach it.
type Folding struct {
	*Driver
	API   client.Client
	Jobs  []client.Object // that arrive after Sync
	State *engine.State
}

func (f *Folding) fold(events []sched.Event) []sched.Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b sched.Event) int { return int(a.Kind) - int(b.Kind) })
	for i := range sorted {
		f.State.Apply(&sorted[i])
	}
	return sorted
}

func (f *Folding) Sync(ctx context.Context, _ *sched.View) ([]sched.Event, error) {
	events, err := f.Driver.Sync(ctx, f.State.View())
	for _, j := range f.Jobs {
		if failed := f.API.Create(ctx, j); failed != nil {
			return nil, failed
		}
	}
	return f.fold(events), err
}

func (f *Folding) Next(ctx context.Context, until sched.Time) ([]sched.Event, error) {
	events, err := f.Driver.Next(ctx, until)
	return f.fold(events), err
}

func (f *Folding) Apply(ctx context.Context, p sched.Plan) error {
	for i := range p.Actions {
		a := &p.Actions[i]
		j := &f.State.View().Jobs[a.Job]
		switch {
		case a.Kind == sched.Start && a.Attempt > j.Attempts && !j.HoldsDevices():
			f.State.Apply(&sched.Event{Time: f.Now(), Kind: sched.Decided, Job: a.Job,
				Target: &sched.Target{Job: a.Job}, GPUs: a.GPUs})
		case a.Kind == sched.Stop && a.Attempt == j.Attempts && j.HoldsDevices() && j.Attempt != sched.Stopping:
		default:
			continue
		}
		f.State.Apply(&sched.Event{Time: f.Now(), Kind: sched.Ordered, Job: a.Job, Attempt: a.Attempt,
			Code: int32(a.Kind)})
	}
	return f.Driver.Apply(ctx, p)
}
