package speedup

import "github.com/trainyard/trainyard/sched"

// Oracle knows the applications as they truly are, by the name in JobSpec.Model. It is the Source of runs marked as
// such, and it is what a simulator takes for the truth.
type Oracle struct {
	apps    map[string]App
	looks   map[string]App // apps as chains show them, see InSamples
	perNode int
	maxGPUs int
	chains  map[oracleKey]Chain
	sizes   map[oracleKey][]int
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

// NewOracle returns the Oracle of applications in a cluster of nodes with gpusPerNode GPUs, which answers for widths up
// to maxGPUs. It keeps apps.
func NewOracle(apps map[string]App, gpusPerNode, maxGPUs int) *Oracle {
	return &Oracle{apps: apps, looks: apps, perNode: gpusPerNode, maxGPUs: maxGPUs,
		chains: make(map[oracleKey]Chain), sizes: make(map[oracleKey][]int), meters: make(map[oracleKey]meterOrError)}
}

// Fresh returns an Oracle that knows the same: one for each goroutine, as asking changes what is kept of earlier
// answers.
func (o *Oracle) Fresh() *Oracle {
	f := NewOracle(o.apps, o.perNode, o.maxGPUs)
	f.looks = o.looks
	return f
}

// Chain returns the true chain of job j and where the job is by the work that its driver has reported, extrapolated to
// now. It is nil for a job of an unknown application, or one that has no Meter.
func (o *Oracle) Chain(v *sched.View, j sched.JobID) (c Chain, phase int, done float64) {
	return o.Within(v, j, v.Jobs[j].Spec.Batch)
}

// Whole returns the chain of a job that has not started, nil if its application is unknown or has no Meter.
func (o *Oracle) Whole(spec *sched.JobSpec) Chain {
	if m, err := o.Meter(spec); m == nil || err != nil {
		return nil
	}
	return o.chain(spec.Model, spec.Batch)
}

func (o *Oracle) chain(model string, batch sched.BatchRange) Chain {
	key := oracleKey{model: model, batch: batch}
	c, ok := o.chains[key]
	if !ok {
		c = ChainOf(o.looks[model], o.perNode, o.maxGPUs, batch)
		o.chains[key] = c
	}
	return c
}

// Meter returns the Meter of a job, nil if its application is unknown. Jobs of equal application, width and batch size
// share it.
func (o *Oracle) Meter(spec *sched.JobSpec) (*Meter, error) {
	key := oracleKey{spec.Model, spec.GPUs, spec.Batch}
	m, ok := o.meters[key]
	if !ok {
		app, known := o.apps[spec.Model]
		if !known {
			return nil, nil
		}
		m.meter, m.err = NewMeter(app, spec, o.perNode)
		o.meters[key] = m
	}
	return m.meter, m.err
}

// meterOf returns the Meter of a job that has arrived: its work counts as when it did, whatever width its user wants
// since.
func (o *Oracle) meterOf(job *sched.Job) (*Meter, error) {
	unit := job.Unit()
	if unit == job.Spec.GPUs.Want {
		return o.Meter(job.Spec)
	}
	spec := *job.Spec
	spec.GPUs = sched.Range{Min: unit, Want: unit, Max: max(unit, spec.GPUs.Max)}
	return o.Meter(&spec)
}
