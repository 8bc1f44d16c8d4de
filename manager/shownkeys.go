package manager

import (
	"cmp"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// Keys returns keys of a job as an edit takes them; nil where its task cannot be read.
func (*Site) Keys(spec *sched.JobSpec) *api.Keys {
	t, err := task.DecodeTask(spec.Task)
	if err != nil {
		return nil
	}
	k := &api.Keys{Grace: timeOf(t.Grace), GPUTypes: t.GPUTypes, GPUMemory: figure(spec.GPUMemGB)}
	if t.TimeLimit > 0 {
		k.TimeLimit = &api.TimeLimit{Max: timeOf(t.TimeLimit), Warn: timeOf(t.TimeWarn), Each: t.TimeEach}
	}
	if spec.WallTime != t.TimeLimit {
		k.WallTime = timeOf(spec.WallTime)
	}
	if k.Retries = int(spec.Retries); t.Backoff > 0 || len(t.RetryOn) > 0 {
		k.Retry, k.Retries = &api.Retries{Max: k.Retries, Backoff: timeOf(t.Backoff), On: t.RetryOn}, 0
	}
	for _, n := range t.Notify {
		way := api.Notify{On: n.On, Desktop: n.Desktop, Mail: n.Mail, Run: n.Run}
		if n.Webhook != "" {
			way.Webhook = &api.Webhook{File: n.Webhook}
		}
		k.Notify = append(k.Notify, way)
	}
	if t.Tree.Sum != "" {
		k.Snapshot = t.Tree.String()
	}
	if spec.Preempt != sched.AfterSave {
		k.Preemptible = spec.Preempt.String()
	}
	return k
}

// Paths says where a job runs and what it writes to; nil where its task cannot be read.
func (*Site) Paths(id sched.JobID, spec *sched.JobSpec) *api.Paths {
	t, err := task.DecodeTask(spec.Task)
	if err != nil {
		return nil
	}
	p := &api.Paths{Dir: t.Dir, Program: t.Program(), Checkpoint: t.Checkpoint.Dir}
	p.Tasks, _ = strconv.Atoi(t.Env[task.SlurmTasks]) // 0 = it is not there
	if t.Output.File != "" {
		p.Output = t.Expand(t.Output.File, id, spec)
		p.Error = t.Expand(cmp.Or(t.Output.Error, t.Output.File), id, spec)
	}
	return p
}

// Notices says what was sent last in each way in which the user of a job hears of it.
func (s *Site) Notices(id sched.JobID, spec *sched.JobSpec) []api.NoticeState {
	t, err := task.DecodeTask(spec.Task)
	if err != nil || s.m.o.Notices == nil || len(t.Notify) == 0 {
		return nil
	}
	return s.m.o.Notices.Tried(spec.Ties.Array.First(id), t.Notify)
}

// TimeLimit returns that of a job; 0 = none.
func (*Site) TimeLimit(spec *sched.JobSpec) time.Duration { return task.TimeLimitOf(spec.Task) }

// timeOf writes a time as job files have it; "" = none.
func timeOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// figure is x with the digits that it was written with.
func figure(x float32) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64) // it is a number
	return f
}
