package speedup

import (
	"fmt"
	"sort"
	"time"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Meter measures the work of a job (sched.Job.Work) against the progress of its application.
//
// Work is time under the nominal way to run: on as many GPUs as the job asks for (GPUs.Want), packed, at the batch size
// that it asks for (Batch.Min = Batch.Max) or else at the best one within its range. Where that is not possible,
// because the memory of so few GPUs holds no batch, the nominal width is the next that is. So the duration of a job,
// and the rate at which it does work under another way, follow from its application.
type Meter struct {
	Nominal Way // Batch 0 = the best of each phase
	app     App
	limits  sched.BatchRange
	speeds  []float64 // of each phase under the nominal way
	ends    []time.Duration
	best    map[Way]Way // at the best batch size: by phase, as Accum, GPUs and nodes
}

// NewMeter returns the Meter of a job with app, in a cluster of nodes with gpusPerNode GPUs. It is an error if there is
// no nominal way up to spec.GPUs.Max, or if it takes more than MaxDuration.
func NewMeter(app App, spec *sched.JobSpec, gpusPerNode int) (*Meter, error) {
	m := &Meter{app: app, limits: spec.Batch}
	if b := spec.Batch; b.Min == b.Max {
		m.Nominal.Batch = int(b.Max)
	}
	for gpus := int(spec.GPUs.Want); gpus <= int(spec.GPUs.Max); gpus++ {
		m.Nominal.GPUs, m.Nominal.Nodes = gpus, ceilDiv(gpus, gpusPerNode)
		if m.measure() {
			break
		}
	}
	if m.speeds == nil {
		return nil, fmt.Errorf("speedup: %s does not run on %d..%d GPUs with batch size %d..%d, want a way that "+
			"it does",
			csvtable.Quote(spec.Model), spec.GPUs.Want, spec.GPUs.Max, spec.Batch.Min, spec.Batch.Max)
	}
	sum := 0.0
	for phase, size := range app.Sizes() {
		if sum += size / m.speeds[phase]; !(sum <= MaxDuration.Seconds()) {
			return nil, fmt.Errorf("speedup: %s takes %v s, want at most %v s", csvtable.Quote(spec.Model), sum,
				MaxDuration.Seconds())
		}
		m.ends = append(m.ends, sched.Seconds(sum))
	}
	return m, nil
}

// MaxDuration bounds the work of a job: 100 years.
const MaxDuration = 36525 * 24 * time.Hour

// measure takes the nominal speeds; it leaves none, and returns false, if a phase cannot be run so.
func (m *Meter) measure() bool {
	n := len(m.app.Sizes())
	speeds := make([]float64, n)
	for phase := range n {
		if speeds[phase] = m.speed(phase, m.Nominal); speeds[phase] <= 0 {
			return false
		}
	}
	if n > 0 {
		m.speeds = speeds
	}
	return n > 0
}

// speed is that of the application, with the batch size of the job where w says none.
func (m *Meter) speed(phase int, w Way) float64 {
	if w.Batch == 0 {
		w.Batch, w.Accum = m.Nominal.Batch, 0
	}
	if w.Batch == 0 {
		_, speed := m.app.Best(phase, w.GPUs, w.Nodes, m.limits)
		return speed
	}
	return m.app.Speed(phase, w)
}

// NominalDuration returns the work of a whole job: how long it takes under its nominal way. The error is that of
// NewMeter.
func NominalDuration(app App, spec *sched.JobSpec, gpusPerNode int) (time.Duration, error) {
	m, err := NewMeter(app, spec, gpusPerNode)
	if err != nil {
		return 0, err
	}
	return m.Duration(), nil
}

// Duration returns the work of the whole job.
func (m *Meter) Duration() time.Duration { return m.ends[len(m.ends)-1] }

// End returns the work at the end of a phase.
func (m *Meter) End(phase int) time.Duration { return m.ends[phase] }

// Phases returns the number of phases.
func (m *Meter) Phases() int { return len(m.ends) }

// At returns the phase that the job is in after so much work, and which share of it is done, 0..1. At the end of a
// phase the next has started; at the end of the last it is that one, with 1.
func (m *Meter) At(work time.Duration) (phase int, done float64) {
	phase = sort.Search(len(m.ends), func(i int) bool { return m.ends[i] > work })
	if phase == len(m.ends) {
		return phase - 1, 1
	}
	start := time.Duration(0)
	if phase > 0 {
		start = m.ends[phase-1]
	}
	return phase, max(0, float64(work-start)/float64(m.ends[phase]-start))
}

// Rate returns the work done per time after so much work if the job runs so, and the work at which that changes next:
// the end of the phase. Without a batch size the job has the one it asks for, or the best within its range. 0 = not
// possible.
func (m *Meter) Rate(work time.Duration, w Way) (rate float64, until time.Duration) {
	phase, _ := m.At(work)
	return m.speed(phase, w) / m.speeds[phase], m.ends[phase]
}

// bestOf returns w with the best batch size of a phase. Looking for that costs much, and the same is asked again and
// again.
func (m *Meter) bestOf(phase int, w Way) Way {
	key := Way{GPUs: w.GPUs, Nodes: w.Nodes, Accum: phase}
	best, ok := m.best[key]
	if !ok {
		if m.best == nil {
			m.best = make(map[Way]Way)
		}
		best, _ = m.app.Best(phase, w.GPUs, w.Nodes, m.limits)
		m.best[key] = best
	}
	return best
}

// Placer is an App that knows how fast it is on an exact placement, the number of GPUs on each node; it overrides
// w.GPUs and w.Nodes. 0 = not possible.
type Placer interface {
	SpeedPlaced(phase int, placement []int, w Way) float64
}

var _ Placer = (*Profile)(nil)

// With returns a Meter that measures the same work by the same progress, but takes speeds from another application, of
// the same phases.
func (m *Meter) With(app App) *Meter {
	o := *m
	o.app, o.best = app, nil
	return &o
}

// Unbound returns the best way to run after so much work on a placement, whatever batch size the job asks for.
func (m *Meter) Unbound(work time.Duration, placement []int) Way {
	phase, _ := m.At(work)
	gpus, nodes := count(placement)
	w, _ := m.app.Best(phase, gpus, nodes, sched.BatchRange{})
	return w
}

// RatePlaced is Rate on an exact placement, the number of GPUs on each node, zeros left out. Only a Placer gives it
// from others of as many GPUs and nodes.
func (m *Meter) RatePlaced(work time.Duration, placement []int, w Way) (rate float64, until time.Duration) {
	w.GPUs, w.Nodes = count(placement)
	phase, _ := m.At(work)
	placer, ok := m.app.(Placer)
	if !ok || w.GPUs == 0 {
		return m.Rate(work, w)
	}
	if w.Batch == 0 {
		if w.Batch, w.Accum = m.Nominal.Batch, 0; w.Batch == 0 {
			w = m.bestOf(phase, w)
		}
	}
	if w.Batch == 0 {
		return 0, m.ends[phase]
	}
	return placer.SpeedPlaced(phase, placement, w) / m.speeds[phase], m.ends[phase]
}
