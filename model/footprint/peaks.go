package footprint

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Margin is what a figure is taken for more than it says: what a process has beyond its tensors, and varies.
const Margin = 1.05

// Settled is how long a job runs before the most memory that it had is taken for its peak. Ours.
const Settled = 10 * time.Minute

// maxKinds bounds the kinds of jobs that are remembered: the oldest makes room.
const maxKinds = 1 << 12

// Source is where a figure comes from.
type Source uint8

// Sources. Unknown is the zero value.
const (
	Unknown  Source = iota
	Stated          // by its submitter
	Measured        // of the job itself
	Alike           // of jobs alike that finished
)

// Missing says what a job lacks that might share GPUs by figures: one is Unknown. What gives it one depends on where it
// runs.
const Missing = "its GPU memory is neither stated nor learned"

// String returns the word of a known source.
func (s Source) String() string {
	return [...]string{"unknown", "stated", "measured", "measured of jobs alike"}[s]
}

// kind are jobs that are taken to have the same peak.
type kind struct {
	user, model string
	gpus, batch int32
}

func kindOf(s *sched.JobSpec) kind { return kind{s.User, s.Model, s.GPUs.Want, s.Batch.Max} }

// peak is the most memory that a job was seen to have on one GPU, in GB.
type peak struct {
	gb      float32
	settled bool // it ran long enough to be its peak
}

// Peaks are the most device memory that jobs had on one GPU. What a job was measured to have counts over what its
// submitter stated once it is more; where nothing is stated, it counts once the job has run for Settled, and until then
// what the last job alike had that finished.
type Peaks struct {
	sched.ByName

	jobs    []peak
	kinds   map[kind]float32
	order   []kind // of kinds, the oldest first
	changed bool   // by the last event
}

// New returns Peaks that have seen nothing.
func New() *Peaks { return &Peaks{kinds: make(map[kind]float32)} }

var (
	_ sched.Observer = (*Peaks)(nil)
	_ sched.Memory   = (*Peaks)(nil)
)

// Observe learns from what is measured of jobs.
func (p *Peaks) Observe(v *sched.View, e *sched.Event) {
	p.changed = false
	switch e.Kind {
	case sched.Measured, sched.Progressed, sched.EpochEnded, sched.AttemptEnded:
	default:
		return
	}
	if e.Job == sched.None {
		return
	}
	if e.Kind == sched.Measured && e.MemGB > 0 {
		p.room(e.Job)
		if x := &p.jobs[e.Job]; e.MemGB > x.gb {
			x.gb, p.changed = e.MemGB, true
		}
	}
	if int(e.Job) >= len(p.jobs) || p.jobs[e.Job].gb == 0 {
		return
	}
	j, x := &v.Jobs[e.Job], &p.jobs[e.Job]
	if !x.settled && j.RunNow(v.Now) >= Settled {
		x.settled, p.changed = true, true
	}
	if e.Kind == sched.AttemptEnded && e.Outcome == sched.Finished {
		p.learn(kindOf(j.Spec), x.gb)
		p.changed = true
	}
}

func (p *Peaks) room(j sched.JobID) {
	for len(p.jobs) <= int(j) {
		p.jobs = append(p.jobs, peak{})
	}
}

// learn takes the peak of a job that finished.
func (p *Peaks) learn(k kind, gb float32) {
	if _, known := p.kinds[k]; known {
		p.order = slices.DeleteFunc(p.order, func(o kind) bool { return o == k })
	} else if len(p.order) == maxKinds {
		delete(p.kinds, p.order[0])
		p.order = p.order[1:]
	}
	p.kinds[k], p.order = gb, append(p.order, k)
}

// News reports whether the last event changed what is known.
func (p *Peaks) News() bool { return p.changed }

// Of returns how much device memory job j has at most on one GPU, in GB, and where that is from.
func (p *Peaks) Of(v *sched.View, j sched.JobID) (gb float64, from Source) {
	s, own := v.Jobs[j].Spec, peak{}
	if int(j) < len(p.jobs) {
		own = p.jobs[j]
	}
	switch alike := p.kinds[kindOf(s)]; {
	case s.GPUMemGB > 0 && own.gb <= s.GPUMemGB:
		return float64(s.GPUMemGB), Stated
	case s.GPUMemGB > 0 || own.settled || alike > 0 && own.gb > alike:
		return float64(own.gb), Measured
	case alike > 0:
		return float64(alike), Alike
	}
	return 0, Unknown
}
