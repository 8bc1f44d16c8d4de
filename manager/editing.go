package manager

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// MayRank refuses a priority above what users may give, unless an admin asks.
func (s *Site) MayRank(who api.Who, priority int32) error {
	h := s.m.Host.Header()
	if system.IgnoresPriority(&h) && priority != 0 {
		return fmt.Errorf("%w: priority %d: %[3]s runs with priority=ignore; want 0, or serve --set %[3]s.priority=own",
			api.ErrRefused, priority, h.System)
	}
	if bad := weighed(&h, priority); bad != nil {
		return bad
	}
	if most := max(s.m.o.UserPriority, 0); who.Role < api.Admin && priority > most {
		return api.Refusal(http.StatusForbidden, "priority %d takes the role admin, want at most %d", priority, most)
	}
	return nil
}

// weighed refuses a priority of which the system of h would not count all steps.
func weighed(h *eventlog.Header, priority int32) error {
	most := system.MostPriority(h)
	if most == 0 || priority >= -most && priority <= most {
		return nil
	}
	return fmt.Errorf("%w: priority %d: %s counts %d steps, up and down; want from %d to %[4]d", api.ErrRefused,
		priority, h.System, most, -most)
}

// ranked refuses the first of jobs that has such a priority.
func ranked(h *eventlog.Header, jobs []jobfile.Job) error {
	for i := range jobs {
		if err := weighed(h, jobs[i].Spec.Priority); err != nil {
			return fmt.Errorf("job %s: %w", jobs[i].Spec.Name, err)
		}
	}
	return nil
}

// Edit changes keys of a job, all of them or none. Those of an attempt that has been started hold of the next one.
func (s *Site) Edit(ctx context.Context, who api.Who, job sched.JobID, in *api.Edit) (now, next []string, err error) {
	if in.Dir != "" {
		if bad := task.CheckDir(in.Dir); bad != nil {
			return nil, nil, fmt.Errorf("%w: %w", api.ErrMalformed, bad)
		}
	}
	var keys []string
	runs := false
	err = s.m.Host.Change(ctx, job, func(*sched.JobChange) {}, func(spec *sched.JobSpec, c *sched.JobChange) error {
		runs = s.m.View().Job(job).HoldsDevices()
		edited, bad := edit(spec.Changed(c), in)
		if bad == nil {
			bad = s.m.o.fitsMachine([]jobfile.Job{{Spec: edited.Spec}})
		}
		if bad == nil && edited.touches("gpus", "gpu_type", "gpu_memory_gb") {
			bad = s.retype(ctx, job, &edited)
		}
		if bad != nil {
			return bad
		}
		keys = edited.keys
		if edited.Spec.Priority > c.Priority || edited.touches("priority") && edited.Spec.Priority < 0 {
			bad = s.MayRank(who, edited.Spec.Priority)
		}
		*c = edited.Spec.Change()
		c.Spec = &edited.Spec
		return cmp.Or(bad, s.m.refuse(spec, c))
	})
	if err != nil {
		return nil, nil, err
	}
	for _, key := range keys {
		if runs && !slices.Contains(jobfile.AtOnce, key) {
			next = append(next, key)
		} else {
			now = append(now, key)
		}
	}
	return now, next, nil
}

// edited is a job with other keys.
type edited struct {
	jobfile.Job
	keys []string
}

// touches reports whether one of some keys is changed.
func (e *edited) touches(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(e.keys, key) })
}

// retype gives a job the types of GPUs that it takes from now on: those that it is on are to be among them.
func (s *Site) retype(ctx context.Context, id sched.JobID, e *edited) error {
	e.Spec.Types = 0
	jobs, err := s.m.typed(ctx, []jobfile.Job{e.Job})
	if err != nil {
		return err
	}
	v := s.m.View()
	j := v.Job(id)
	for _, g := range slices.Concat(j.GPUs, j.Target) {
		if t := v.Nodes[v.GPUs[g].Node].Spec.Type; !jobs[0].Spec.Types.Has(t) {
			return fmt.Errorf("%w: job %d is on GPUs of type %s, want these too, or `trainyard pause %d` first",
				ErrRefused, id, v.Types[t], id)
		}
	}
	e.Spec = jobs[0].Spec
	return nil
}

// edit returns a job as its keys are to be.
func edit(spec *sched.JobSpec, in *api.Edit) (edited, error) {
	t, err := task.DecodeTask(spec.Task)
	if err != nil {
		return edited{}, err
	}
	job, keys, err := jobfile.Edit(*spec, t, []byte(in.Keys), cmp.Or(in.Dir, t.Dir))
	if err != nil {
		return edited{}, fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	if slices.Contains(keys, "output") {
		if bad := CheckOutputs([]jobfile.Job{job}); bad != nil {
			return edited{}, bad
		}
	}
	job.Spec.Task = job.Task.Encode()
	return edited{job, keys}, nil
}
