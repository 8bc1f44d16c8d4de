package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// ErrFixed says that a manager has the jobs of a file.
var ErrFixed = api.ErrFixed

// Submit has jobs arrive, all of them or none, and returns the number of the first once they are durable; the others
// follow it. how is one at most, without Refuse: see host.Host.Submit. Anyone may call it while Run runs, as all
// requests.
func (m *Manager) Submit(ctx context.Context, jobs []jobfile.Job, how ...host.Submitting) (first sched.JobID,
	err error) {
	if m.o.Jobs != nil {
		return sched.None, ErrFixed
	}
	h := m.grown()
	err = Fits(&h, jobs, m.o.Unit)
	if err != nil {
		return sched.None, err
	}
	if jobs, err = m.typed(ctx, jobs); err != nil {
		return sched.None, err
	}
	w := waits{m: m}
	s := append(how, host.Submitting{})[0]
	s.Refuse = func() error { return cmp.Or(m.room.refuse(), w.find(m.View(), jobs)) }
	return m.Host.Submit(ctx, arriving(jobs, w.ids), s)
}

// grown returns the header with the devices there are by now: some joined, or were forgotten.
func (m *Manager) grown() eventlog.Header {
	h, count := m.Header(), 0
	for _, s := range m.Devices() {
		if s.State != sched.GPUForgotten {
			count++
		}
	}
	if count > 0 { // else nothing was looked at so far
		h.GPUs = count
	}
	return h
}

// from makes numbers of jobs of places of the list they came with, the first being that of the first job.
func from(first sched.JobID, places []sched.JobID) (ids []sched.JobID) {
	for _, place := range places {
		ids = append(ids, first+place)
	}
	return ids
}

// arriving returns what makes specs of jobs as they arrive: places of the list they came with become numbers of jobs.
// others says which numbers jobs have that are not in the list.
func arriving(jobs []jobfile.Job, others func([]jobfile.Existing) [][]sched.JobID) func(first sched.JobID,
	now sched.Time) []*sched.JobSpec {
	specs := make([]*sched.JobSpec, len(jobs))
	for i := range jobs {
		spec := jobs[i].Spec
		spec.Task = jobs[i].Task.Encode()
		specs[i] = &spec
	}
	return func(first sched.JobID, now sched.Time) []*sched.JobSpec {
		for i, spec := range specs {
			was := &jobs[i].Spec
			spec.After, spec.Ties.AfterOK, spec.Ties.AfterFail = from(first, was.After), from(first,
				was.Ties.AfterOK), from(first, was.Ties.AfterFail)
			if len(jobs[i].Existing) > 0 {
				j := jobfile.Job{Spec: *spec, Existing: jobs[i].Existing}
				j.Wait(others(jobs[i].Existing))
				*spec = j.Spec
			}
			if jobs[i].Submit > 0 {
				spec.NotBef = max(spec.NotBef, now.Add(jobs[i].Submit))
			}
		}
		return specs
	}
}

// Change has a job be otherwise from now on, see host.Host. ErrRefused says why it cannot be.
func (m *Manager) Change(ctx context.Context, id sched.JobID, change func(*sched.JobChange)) error {
	return m.Host.Change(ctx, id, change, m.refuse)
}

// refuse refuses what would leave a job waiting for ever.
func (m *Manager) refuse(spec *sched.JobSpec, c *sched.JobChange) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if b := spec.Batch; b.PerGPU > 0 && int64(b.PerGPU)*int64(c.GPUs.Max) < int64(b.Min) {
		return fmt.Errorf("%w: a batch of at least %d needs more than %d %ss, of %d each", ErrRefused, b.Min,
			c.GPUs.Max, m.o.Unit,
			b.PerGPU)
	}
	h := m.grown()
	return Fits(&h, []jobfile.Job{{Spec: *spec.Changed(c)}}, m.o.Unit)
}

// Plan says when jobs would start and end if they were submitted now, see host.Host.
func (m *Manager) Plan(ctx context.Context, jobs []jobfile.Job) (f *explain.Forecast, first sched.JobID, err error) {
	h := m.grown()
	misfit := Fits(&h, jobs, m.o.Unit)
	if misfit != nil {
		return nil, sched.None, misfit
	}
	if jobs, err = m.typed(ctx, jobs); err != nil {
		return nil, sched.None, err
	}
	w := waits{m: m}
	err = m.Look(ctx, func(v *sched.View) { misfit = w.find(v, jobs) })
	err = cmp.Or(err, misfit)
	if err != nil {
		return nil, sched.None, err
	}
	return m.Host.Plan(ctx, arriving(jobs, w.ids))
}

// Drain has no new job be given the machine, or lifts that; those on it go on. It returns once that is durable.
func (m *Manager) Drain(ctx context.Context, on bool) error { return m.DrainNodes(ctx, nil, on) }

// DrainNodes is Drain for some nodes, all of them or none; nil = all that there are.
func (m *Manager) DrainNodes(ctx context.Context, nodes []sched.NodeID, on bool) error {
	of := func(v *sched.View) (list []sched.NodeID) {
		for n := range v.Nodes {
			if id := sched.NodeID(n); nodes == nil || slices.Contains(nodes, id) {
				list = append(list, id)
			}
		}
		return list
	}
	if len(m.Header().Pools) == 0 {
		return m.Host.Drain(ctx, of, on)
	}
	// a node is a GPU, be it rented at the moment or not
	return m.withhold(ctx, func(v *sched.View) (gpus []sched.GPUID) {
		for _, n := range of(v) {
			gpus = append(gpus, sched.GPUID(n))
		}
		return gpus
	}, on)
}

// DrainGPUs is Drain for some GPUs, all of them or none.
func (m *Manager) DrainGPUs(ctx context.Context, gpus []sched.GPUID, on bool) error {
	return m.withhold(ctx, func(*sched.View) []sched.GPUID { return gpus }, on)
}

// ForgetGPUs has GPUs that are missing count no more, all of them or none; api.ErrInUse if one is there or held.
func (m *Manager) ForgetGPUs(ctx context.Context, gpus []sched.GPUID) error {
	err := m.posted(ctx, func(*sched.View) ([]sched.Event, error) { return m.driver.Load().Forget(gpus) })
	if errors.Is(err, local.ErrInUse) {
		return api.NewProblem(http.StatusConflict, "in-use", err.Error(), api.ErrInUse)
	}
	return err
}

func (m *Manager) withhold(ctx context.Context, gpus func(*sched.View) []sched.GPUID, on bool) error {
	return m.posted(ctx, func(v *sched.View) ([]sched.Event, error) { return m.driver.Load().Withhold(gpus(v), on) })
}

// posted makes events of what is done, and returns once they are durable, or why nothing was done.
func (m *Manager) posted(ctx context.Context, do func(*sched.View) ([]sched.Event, error)) error {
	var refused error
	err := m.Post(ctx, func(v *sched.View, _ sched.JobID, _ sched.Time) (events []sched.Event) {
		events, refused = do(v)
		return events
	})
	if err != nil {
		return err
	}
	return refused
}

// Devices returns how the devices were when last looked at, by GPUID; nil before Run has started.
func (m *Manager) Devices() []device.Status {
	if d := m.driver.Load(); d != nil {
		return d.Status()
	}
	return nil
}

// Dir returns the folder.
func (m *Manager) Dir() string { return m.o.Dir }

// Expects reports whether a job of that name is among those known beforehand. It may not have arrived yet.
func (m *Manager) Expects(name string) bool {
	return slices.ContainsFunc(m.o.jobs(), func(j jobfile.Job) bool { return j.Spec.Name == name })
}
