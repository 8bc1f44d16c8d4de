package speedup

import "github.com/trainyard/trainyard/sched"

// Oracle knows the applications as they truly are, by the name in JobSpec.Model. It is the Source of runs marked as such, and
// it is what a simulator takes for the truth.
type Oracle struct {
	apps    map[string]App
	perNode int
	maxGPUs int
	chains  map[oracleKey]Chain
	meters  map[oracleKey]meterOrError
}

type meterOrError struct {
	meter *Meter
	err   error
}

// oracleKey is what chains and meters depend on; GPUs is zero for a chain.
type oracleKey struct {
	model string
	gpus  sched.Range
	batch sched.BatchRange
}

var _ Source = (*Oracle)(nil)

// NewOracle returns the Oracle of applications in a cluster of nodes with gpusPerNode GPUs, which answers for widths up to maxGPUs. It
// keeps apps.
func NewOracle(apps map[string]App, gpusPerNode, maxGPUs int) *Oracle {
	return &Oracle{apps: apps, perNode: gpusPerNode, maxGPUs: maxGPUs,
		chains: make(map[oracleKey]Chain), meters: make(map[oracleKey]meterOrError)}
}

// Chain returns the true chain of job j and where the job is by the work that its driver has reported, extrapolated to
// now. It is nil for a job of an unknown application, or one that has no Meter.
func (o *Oracle) Chain(v *sched.View, j sched.JobID) (c Chain, phase int, done float64) {
	job := &v.Jobs[j]
	m, err := o.Meter(job.Spec)
	if m == nil || err != nil {
		return nil, 0, 0
	}
	phase, done = m.At(job.WorkNow(v.Now))
	return o.chain(job.Spec), phase, done
}

func (o *Oracle) chain(spec *sched.JobSpec) Chain {
	key := oracleKey{model: spec.Model, batch: spec.Batch}
	c, ok := o.chains[key]
	if !ok {
		c = ChainOf(o.apps[spec.Model], o.perNode, o.maxGPUs, spec.Batch)
		o.chains[key] = c
	}
	return c
}

// Meter returns the Meter of a job, nil if its application is unknown. Jobs of equal application, width and batch size
// share it.
func (o *Oracle) Meter(spec *sched.JobSpec) (*Meter, error) {
	app, ok := o.apps[spec.Model]
	if !ok {
		return nil, nil
	}
	key := oracleKey{spec.Model, spec.GPUs, spec.Batch}
	m, ok := o.meters[key]
	if !ok {
		m.meter, m.err = NewMeter(app, spec, o.perNode)
		o.meters[key] = m
	}
	return m.meter, m.err
}
