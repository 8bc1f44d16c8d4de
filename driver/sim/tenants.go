package sim

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// tenants is which attempts work on which GPU.
type tenants struct {
	on    [][]sched.JobID // by GPU, in order of ids
	crowd []*trace.Job    // scratch
}

// seat counts job id on its GPUs.
func (t *tenants) seat(id sched.JobID, gpus []sched.GPUID) {
	for _, g := range gpus {
		for int(g) >= len(t.on) {
			t.on = append(t.on, nil)
		}
		at, _ := slices.BinarySearch(t.on[g], id)
		t.on[g] = slices.Insert(t.on[g], at, id)
	}
}

// unseat takes job id from its GPUs.
func (t *tenants) unseat(id sched.JobID, gpus []sched.GPUID) {
	for _, g := range gpus {
		t.on[g] = slices.DeleteFunc(t.on[g], func(o sched.JobID) bool { return o == id })
	}
}

// around appends the other jobs on gpus to dst, which is empty, in order of their ids.
func (t *tenants) around(dst []sched.JobID, id sched.JobID, gpus []sched.GPUID) []sched.JobID {
	for _, g := range gpus {
		for _, o := range t.on[g] {
			if o != id {
				dst = append(dst, o)
			}
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// interference returns the slow-down of job id on the GPU where it suffers most, by model, which is given a job and
// those next to it.
func (t *tenants) interference(id sched.JobID, gpus []sched.GPUID, jobs []trace.Job, model func(*trace.Job,
	[]*trace.Job) float64) float64 {
	worst, last := 1.0, []sched.JobID(nil)
	for _, g := range gpus {
		all := t.on[g]
		if len(all) < 2 || slices.Equal(all, last) { // the same company as on the GPU before
			continue
		}
		last = all
		t.crowd = t.crowd[:0]
		for _, o := range all {
			if o != id {
				t.crowd = append(t.crowd, &jobs[o])
			}
		}
		worst = max(worst, model(&jobs[id], t.crowd))
	}
	return worst
}

// disturbances is how disturbed GPUs are, and will be.
type disturbances struct {
	ahead  []Change  // of Runtime.Changes, those to come
	factor []float64 // by GPU: of the last change; GPUs beyond its end have 1
}

// next returns the time of the next change; sched.Never if none is to come.
func (d *disturbances) next() sched.Time {
	if len(d.ahead) == 0 {
		return sched.Never
	}
	return d.ahead[0].At
}

// apply makes the next change and returns its GPUs.
func (d *disturbances) apply() []sched.GPUID {
	c := d.ahead[0]
	d.ahead = d.ahead[1:]
	for _, g := range c.GPUs {
		for int(g) >= len(d.factor) {
			d.factor = append(d.factor, 1)
		}
		d.factor[g] = c.Factor
	}
	return c.GPUs
}

// worst returns the factor of the most disturbed GPU of a set.
func (d *disturbances) worst(gpus []sched.GPUID) float64 {
	worst := 0.0
	for _, g := range gpus {
		f := 1.0
		if int(g) < len(d.factor) {
			f = d.factor[g]
		}
		worst = max(worst, f)
	}
	return worst
}
