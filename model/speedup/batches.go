package speedup

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Batched is a Source that knows applications at every batch size, not at the best alone. An Oracle is one.
type Batched interface {
	Source
	// Within is Chain for a job that may take batch sizes within limits alone, whatever its own are.
	Within(v *sched.View, j sched.JobID, limits sched.BatchRange) (c Chain, phase int, done float64)
	// BatchSizes returns the batch sizes that a job may be given, ascending, within its own limits; none if it
	// chooses them itself. The slice is not to be changed.
	BatchSizes(spec *sched.JobSpec) []int
	// Gain returns what an update of so many samples is worth now, against one of the smallest batch size; 0 = unknown.
	Gain(v *sched.View, j sched.JobID, batch int) float64
}

var _ Batched = (*Oracle)(nil)

// batched is an App that knows its batch sizes and what they are worth.
type batched interface {
	// sizesWithin returns the batch sizes to choose from.
	sizesWithin(limits sched.BatchRange) []int
	worth() Worth
	// inSamples returns itself with samples for progress.
	inSamples() App
}

var (
	_ batched = (*Trainer)(nil)
	_ batched = (*Throughputs)(nil)
)

// Within returns the true chain with batch sizes within limits alone.
func (o *Oracle) Within(v *sched.View, j sched.JobID, limits sched.BatchRange) (c Chain, phase int, done float64) {
	job := &v.Jobs[j]
	m, err := o.meterOf(job)
	if m == nil || err != nil {
		return nil, 0, 0
	}
	phase, done = m.At(job.WorkNow(v.Now))
	return o.chain(job.Spec.Model, limits), phase, done
}

// BatchSizes returns those that Best would try.
func (o *Oracle) BatchSizes(spec *sched.JobSpec) []int {
	app, ok := o.apps[spec.Model].(batched)
	if !ok {
		return nil
	}
	key := oracleKey{model: spec.Model, batch: spec.Batch}
	sizes, ok := o.sizes[key]
	if !ok {
		sizes = app.sizesWithin(spec.Batch)
		o.sizes[key] = sizes
	}
	return sizes
}

// Gain returns the true worth.
func (o *Oracle) Gain(v *sched.View, j sched.JobID, batch int) float64 {
	job := &v.Jobs[j]
	app, ok := o.apps[job.Spec.Model].(batched)
	sizes := o.BatchSizes(job.Spec)
	m, err := o.meterOf(job)
	if !ok || len(sizes) == 0 || m == nil || err != nil {
		return 0
	}
	phase, _ := m.At(job.WorkNow(v.Now))
	least := app.worth().Gain(phase, sizes[0])
	if least == 0 {
		return 0
	}
	return app.worth().Gain(phase, batch) / least
}

// InSamples returns the Oracle of someone who does not ask what batch sizes are worth: its chains count samples per
// second, and the batch sizes with most of them. It answers alike wherever a job is.
func (o *Oracle) InSamples() *Oracle {
	s := *o
	s.chains, s.looks = make(map[oracleKey]Chain), make(map[string]App, len(o.apps))
	for name, app := range o.apps {
		s.looks[name] = app
		if b, ok := app.(batched); ok {
			s.looks[name] = b.inSamples()
		}
	}
	return &s
}

// counted has the phases of a Worth, and counts samples.
type counted struct{ Worth }

// Gain returns batch where it leads anywhere: a user's range of batch sizes holds no others.
func (c counted) Gain(phase, batch int) float64 {
	if c.Worth.Gain(phase, batch) == 0 {
		return 0
	}
	return float64(batch)
}

func (t *Trainer) inSamples() App {
	s := *t
	s.Worth = counted{t.Worth}
	return &s
}

func (t *Trainer) worth() Worth { return t.Worth }

func (t *Trainer) sizesWithin(limits sched.BatchRange) []int {
	low, high := max(t.Limits.Start, int(limits.Min)), t.Limits.Max
	if limits.Max > 0 {
		high = min(high, int(limits.Max))
	}
	if low > high {
		return nil
	}
	if t.Limits.List != nil {
		return between(t.Limits.List, low, high)
	}
	var sizes []int
	for i := range BatchPoints {
		sizes = append(sizes, t.Limits.point(i, low, high))
	}
	return slices.Compact(sizes)
}

func (x *Throughputs) inSamples() App {
	s := *x
	s.Worth = counted{x.worth()}
	return &s
}

func (x *Throughputs) sizesWithin(limits sched.BatchRange) []int {
	high := x.Batches[len(x.Batches)-1]
	if limits.Max > 0 {
		high = int(limits.Max)
	}
	return between(x.Batches, int(limits.Min), high)
}

// between returns those of an ascending list from low to high.
func between(list []int, low, high int) []int {
	from, _ := slices.BinarySearch(list, low)
	to, _ := slices.BinarySearch(list, high+1)
	return list[from:max(from, to)]
}
