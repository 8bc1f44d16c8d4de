package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Errors of requests.
var (
	ErrNoJob   = errors.New("no such job")
	ErrDone    = errors.New("done already")
	ErrStopped = errors.New("the manager stops")
	ErrFixed   = errors.New("this manager runs the jobs of a file and takes no others")
)

// Submit hands jobs in, all of them or none, and returns the number of the first once they are durable; the others follow it. It
// may be called by anybody while Run runs, as all requests.
func (m *Manager) Submit(ctx context.Context, jobs []jobfile.Job) (first sched.JobID, err error) {
	if m.o.Jobs != nil {
		return sched.None, ErrFixed
	}
	err = Fits(&m.header, jobs, m.o.Unit)
	if err != nil {
		return sched.None, err
	}
	d, err := m.running(ctx)
	if err != nil {
		return sched.None, err
	}
	specs := specsOf(jobs)
	var number sched.JobID = sched.None // not first: the engine may come to it when nobody waits any more
	durable := d.Submit(func(next sched.JobID, now sched.Time) []*sched.JobSpec {
		if ctx.Err() != nil { // who asked was told that it failed
			return nil
		}
		number = next
		arrive(specs, jobs, next, now)
		return specs
	})
	if err := m.await(ctx, durable); err != nil {
		return sched.None, err
	}
	if number == sched.None {
		return sched.None, ctx.Err()
	}
	return number, nil
}

// specsOf returns the specifications of jobs that are to be handed in.
func specsOf(jobs []jobfile.Job) []*sched.JobSpec {
	specs := make([]*sched.JobSpec, len(jobs))
	for i := range jobs {
		spec := jobs[i].Spec
		spec.Task = jobs[i].Task.Encode()
		specs[i] = &spec
	}
	return specs
}

// arrive completes specs of jobs that are handed in now: places of the list they came with become numbers of jobs, the first being
// that of the first job.
func arrive(specs []*sched.JobSpec, jobs []jobfile.Job, first sched.JobID, now sched.Time) {
	for i, spec := range specs {
		spec.After = nil
		for _, place := range jobs[i].Spec.After {
			spec.After = append(spec.After, first+place)
		}
		if jobs[i].Submit > 0 {
			spec.NotBef = max(spec.NotBef, now.Add(jobs[i].Submit))
		}
	}
}

// Command has done with a job what its user wants, and returns once that is durable. ErrNoJob and ErrDone say why it cannot be.
func (m *Manager) Command(ctx context.Context, id sched.JobID, c sched.Command) error {
	row, known, _ := m.board.Row(id)
	switch {
	case !known:
		return ErrNoJob
	case row.State == sched.Done:
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	d, err := m.running(ctx)
	if err != nil {
		return err
	}
	if err := m.await(ctx, d.Command(id, c)); err != nil {
		return err
	}
	if row, _, _ := m.board.Row(id); row.State == sched.Done && !row.Cancelled {
		return fmt.Errorf("%w (%v)", ErrDone, row.Outcome)
	}
	return nil
}

// Look has f look at the state, the system and its books while nothing changes them. All that f sees is durable; its time is the
// present, not that of the last event. f must be short, keep nothing of it, and ask for nothing.
func (m *Manager) Look(ctx context.Context, f func(*sched.View)) error {
	return m.do(ctx, func(d *local.Driver) {
		v := *m.View()
		v.Now = max(v.Now, d.Clock())
		f(&v)
	})
}

// Brief returns what Look's f may ask why jobs of v do not run, as shortly as lists do.
func (m *Manager) Brief(v *sched.View) *pipeline.Brief { return pipeline.NewBrief(v, m.dec) }

// View is the state as Run's goroutine sees it.
func (m *Manager) View() *sched.View { return m.state.View() }

// running returns the driver once Run has begun.
func (m *Manager) running(ctx context.Context) (*local.Driver, error) {
	select {
	case <-m.up:
		return m.driver, nil
	case <-m.over:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// do has f run between two instants, once Run has begun.
func (m *Manager) do(ctx context.Context, f func(*local.Driver)) error {
	d, err := m.running(ctx)
	if err != nil {
		return err
	}
	if err := d.Do(ctx, func() { f(d) }); ctx.Err() == nil && err != nil {
		return ErrStopped
	} else if err != nil {
		return err
	}
	return nil
}

// await waits until what was handed in is durable.
func (m *Manager) await(ctx context.Context, durable <-chan struct{}) error {
	select {
	case <-durable:
		return nil
	case <-m.over:
		select {
		case <-durable: // both
			return nil
		default:
			return ErrStopped
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Drain has no new job be given the machine, or lifts that; those on it go on. It returns once that is durable.
func (m *Manager) Drain(ctx context.Context, on bool) error { return m.DrainNodes(ctx, nil, on) }

// DrainNodes is Drain for some nodes, all of them or none; nil = all that there are.
func (m *Manager) DrainNodes(ctx context.Context, nodes []sched.NodeID, on bool) error {
	return m.tell(ctx, func(v *sched.View) []sched.Event {
		state := sched.NodeUp
		if on {
			state = sched.NodeDraining
		}
		var events []sched.Event
		for n := range v.Nodes {
			if id := sched.NodeID(n); nodes == nil || slices.Contains(nodes, id) {
				events = append(events, sched.Event{Kind: sched.NodeChanged, Node: id, Code: int32(state)})
			}
		}
		return events
	})
}

// DrainGPUs is Drain for some GPUs, all of them or none.
func (m *Manager) DrainGPUs(ctx context.Context, gpus []sched.GPUID, on bool) error {
	return m.tell(ctx, func(*sched.View) []sched.Event {
		state := sched.GPUInUse
		if on {
			state = sched.GPUWithheld
		}
		var events []sched.Event
		for _, g := range gpus {
			events = append(events, sched.Event{Kind: sched.GPUChanged, Value: float64(g), Code: int32(state)})
		}
		return events
	})
}

// tell passes on what a user wants of the machine.
func (m *Manager) tell(ctx context.Context, wishes func(*sched.View) []sched.Event) (err error) {
	var durable <-chan struct{}
	asked := m.do(ctx, func(d *local.Driver) {
		durable, err = d.Tell(wishes(m.View())...)
	})
	if asked != nil || err != nil {
		return errors.Join(asked, err)
	}
	return m.await(ctx, durable)
}

// Devices returns how the devices were when last looked at, by GPUID; nil before Run has begun.
func (m *Manager) Devices() []device.Status {
	select {
	case <-m.up:
		return m.driver.Status()
	default:
		return nil
	}
}

// Header returns how the log begins: who decides, on what.
func (m *Manager) Header() eventlog.Header { return m.header }

// Dir returns the folder.
func (m *Manager) Dir() string { return m.o.Dir }

// Expects reports whether a job of that name is among those known beforehand. It may not have arrived yet.
func (m *Manager) Expects(name string) bool {
	return slices.ContainsFunc(m.o.jobs(), func(j jobfile.Job) bool { return j.Spec.Name == name })
}
