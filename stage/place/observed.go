package place

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Observed infers the class of a job from how fast jobs of its model ran on GPUs of different scores. Until something
// is known of a model, and for jobs without one, it is the first, the most sensitive.
//
// Only attempts count whose GPUs are on one node, so that distance says nothing, and whose slowest GPU is the same
// whatever the class: what a synchronous gang shows is the speed of that one.
//
// Deviation: the paper profiles every application before it runs; see variability.Scores.ClassOf for the rule.
type Observed struct {
	sched.ByName

	scores   *variability.Scores
	models   map[string]*seenModel
	revision uint64
}

// seenModel is what is known of a model.
type seenModel struct {
	class int
	fresh uint64 // times noted since the class was last looked for
	gpus  []seenGPU
}

// seenGPU is the last times that an iteration took, relative to the nominal one, on a GPU; the oldest is first.
type seenGPU struct {
	gpu   int
	times []float64
}

// Bounds on what is remembered: enough GPUs to distinguish classes that differ, enough times to have an odd one not
// count.
const (
	maxSeenModels = 1 << 10
	maxSeenGPUs   = 32
	maxSeenTimes  = 5
	lookAgain     = 16 // times noted of known GPUs after which the class is looked for again
)

// NewObserved returns the estimator; scores are what is known of the GPUs, by number.
func NewObserved(scores *variability.Scores) *Observed {
	return &Observed{scores: scores, models: make(map[string]*seenModel)}
}

var (
	_ sched.Observer = (*Observed)(nil)
	_ sched.Reviser  = (*Observed)(nil)
	_ sched.Memory   = (*Observed)(nil)
)

// Class returns the class of job j.
func (o *Observed) Class(v *sched.View, j sched.JobID) int {
	if m := o.models[v.Jobs[j].Spec.Model]; m != nil {
		return m.class
	}
	return 0
}

// Observe notes the rate at which a job runs.
func (o *Observed) Observe(v *sched.View, e *sched.Event) {
	if !e.ReportsRate() || math.IsInf(1/e.Rate, 1) {
		return
	}
	job := &v.Jobs[e.Job]
	if job.Spec.Model == "" || len(job.GPUs) == 0 || !asAsked(job) || Distance(v, job.GPUs) != variability.SameNode {
		return
	}
	g, ok := o.slowest(job.GPUs)
	if !ok {
		return
	}
	m := o.models[job.Spec.Model]
	if m == nil {
		if len(o.models) == maxSeenModels {
			return
		}
		m = &seenModel{}
		o.models[job.Spec.Model] = m
	}
	if news := m.note(g, 1/e.Rate); news || m.fresh >= lookAgain {
		m.fresh = 0
		o.look(m)
	}
}

// asAsked reports whether j runs on as many GPUs as its rate is counted in: on more or fewer the rate reports its
// width as well.
func asAsked(j *sched.Job) bool { return len(j.GPUs) == int(j.Unit()) }

// slowest returns the GPU that is the slowest for every class, and whether there is one.
func (o *Observed) slowest(gpus []sched.GPUID) (slowest int, ok bool) {
	for c, pm := range o.scores.PM {
		worst := -1
		for _, g := range gpus {
			if int(g) >= len(pm) {
				return 0, false
			}
			if worst < 0 || pm[g] > pm[worst] {
				worst = int(g)
			}
		}
		if c > 0 && worst != slowest {
			return 0, false
		}
		slowest = worst
	}
	return slowest, true
}

// note remembers a time and reports whether it is the first on its GPU.
func (m *seenModel) note(gpu int, time float64) (news bool) {
	i, found := slices.BinarySearchFunc(m.gpus, gpu, func(s seenGPU, gpu int) int { return s.gpu - gpu })
	switch {
	case !found && len(m.gpus) == maxSeenGPUs:
		return false
	case !found:
		m.gpus = slices.Insert(m.gpus, i, seenGPU{gpu: gpu})
	}
	s := &m.gpus[i]
	if len(s.times) == maxSeenTimes {
		s.times = append(s.times[:0], s.times[1:]...)
	}
	s.times = append(s.times, time)
	m.fresh++
	return !found
}

// look looks for the class again. What was reported stays where nothing can be reported any more.
func (o *Observed) look(m *seenModel) {
	var seen []variability.Seen
	for i := range m.gpus {
		for _, t := range m.gpus[i].times {
			seen = append(seen, variability.Seen{GPU: m.gpus[i].gpu, Seconds: t})
		}
	}
	class, reported, err := o.scores.ClassOf(seen)
	if err == nil && reported && class != m.class {
		m.class = class
		o.revision++
	}
}

// Revision rises when the class of a model changes.
func (o *Observed) Revision() uint64 { return o.revision }

// Format names what is saved.
func (*Observed) Format() string { return "observed-classes/1" }

// SaveJob writes nothing: what is learned is learned of models.
func (o *Observed) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob reads nothing.
func (o *Observed) LoadJob(sched.JobID, []byte) error { return nil }

// SaveRest appends the revision and, for each model by name, its class and its times.
func (o *Observed) SaveRest(b []byte) []byte {
	b = memo.Uint(memo.Uint(b, o.revision), uint64(len(o.models)))
	for _, name := range slices.Sorted(maps.Keys(o.models)) {
		m := o.models[name]
		b = memo.Uint(memo.Uint(memo.Uint(memo.Text(b, name), uint64(m.class)), m.fresh), uint64(len(m.gpus)))
		for i := range m.gpus {
			b = memo.Uint(memo.Uint(b, uint64(m.gpus[i].gpu)), uint64(len(m.gpus[i].times)))
			for _, t := range m.gpus[i].times {
				b = memo.Float(b, t)
			}
		}
	}
	return b
}

// LoadRest restores what SaveRest wrote. On error all stays as it was.
func (o *Observed) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	revision := r.Uint(math.MaxUint64)
	models := make(map[string]*seenModel)
	for range r.Uint(maxSeenModels) {
		name := r.Text()
		m := &seenModel{class: int(r.Uint(uint64(len(o.scores.Classes) - 1))), fresh: r.Uint(math.MaxUint64)}
		for range r.Uint(maxSeenGPUs) {
			s := seenGPU{gpu: int(r.Uint(uint64(len(o.scores.GPUs) - 1)))}
			for range r.Uint(maxSeenTimes) {
				t := r.Float()
				r.Want(t > 0 && !math.IsInf(t, 1), "time %v, want > 0 and finite", t)
				s.times = append(s.times, t)
			}
			r.Want(len(s.times) > 0 && (len(m.gpus) == 0 || s.gpu > m.gpus[len(m.gpus)-1].gpu),
				"GPU %d without times or out of order", s.gpu)
			m.gpus = append(m.gpus, s)
		}
		r.Want(name != "" && models[name] == nil, "model %.80q without a name or twice", name)
		if r.Err() != nil {
			break
		}
		models[name] = m
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("place: memory of observed classes: %w", err)
	}
	o.models, o.revision = models, revision
	return nil
}
