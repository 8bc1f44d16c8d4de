package eaco

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// Knowledge is what is known of jobs beside what they say of themselves.
type Knowledge struct {
	Work    sched.Remainer             // of jobs alone; needed
	Restart func(string) time.Duration // what a restart costs, by model; nil = nothing
	Learner *interference.Learner      // history of sets; needed
}

// epoch returns how long an epoch of job id takes alone, 0 if it has none.
func (k *Knowledge) epoch(v *sched.View, id sched.JobID) time.Duration {
	j := &v.Jobs[id]
	if j.Spec.Epochs == 0 {
		return 0
	}
	return max((j.WorkNow(v.Now)+k.Work.Remaining(v, id))/time.Duration(j.Spec.Epochs), 0)
}

// finish returns when job id is done if a unit of work takes slow times as long as alone from now on: where it runs, or
// started now.
func (k *Knowledge) finish(v *sched.View, id sched.JobID, slow float64) sched.Time {
	j, from := &v.Jobs[id], v.Now
	switch {
	case j.Attempt == sched.Running && j.WorkFrom > from:
		from = j.WorkFrom
	case !j.HoldsDevices() && j.Attempts > 0 && k.Restart != nil:
		from = from.Add(k.Restart(j.Spec.Model))
	}
	work := float64(max(k.Work.Remaining(v, id), 0)) * slow
	if !(work < float64(sched.Never)/2) {
		return sched.Never
	}
	return from.Add(time.Duration(work))
}

// predictor answers what History says of sets, and keeps the answers until something is learned.
type predictor struct {
	learner *interference.Learner
	number  map[string]int16 // of models, from 1
	models  []string
	jobs    []int16 // number of the model by job; 0 = not asked yet
	known   map[question]float64
	members []interference.Member   // scratch
	found   []interference.Estimate // scratch
}

// question asks how much slower a job of model who is, of a width, beside others on GPUs of a type.
type question struct {
	typ    sched.TypeID
	width  int32
	who    int16
	others [interference.MaxSet - 1]int16 // sorted, then zeros
}

func newPredictor(l *interference.Learner) *predictor {
	return &predictor{learner: l, number: make(map[string]int16), known: make(map[question]float64)}
}

// forget is called when something may have been learned.
func (p *predictor) forget() { clear(p.known) }

// of returns the number of a model.
func (p *predictor) of(model string) int16 {
	n, known := p.number[model]
	if !known {
		n = int16(len(p.models) + 1)
		p.number[model], p.models = n, append(p.models, model)
	}
	return n
}

// model returns the number of the model of job id.
func (p *predictor) model(v *sched.View, id sched.JobID) int16 {
	for len(p.jobs) < len(v.Jobs) {
		p.jobs = append(p.jobs, 0)
	}
	if p.jobs[id] == 0 {
		p.jobs[id] = p.of(v.Jobs[id].Spec.Model)
	}
	return p.jobs[id]
}

// slow returns how much slower job id, width GPUs wide, is than alone beside others on GPUs of a type; itself among others does
// not count. +Inf: together they ran out of memory before, or nothing can be said of so many.
func (p *predictor) slow(v *sched.View, typ sched.TypeID, width int, id sched.JobID, others []sched.JobID, more sched.JobID) float64 {
	q, n := question{typ: typ, width: int32(width), who: p.model(v, id)}, 0
	add := func(o sched.JobID) bool {
		if o == id || o == sched.None {
			return true
		}
		if n == len(q.others) {
			return false
		}
		q.others[n] = p.model(v, o)
		n++
		return true
	}
	for _, o := range others {
		if !add(o) {
			return math.Inf(1)
		}
	}
	if !add(more) {
		return math.Inf(1)
	}
	if n == 0 {
		return 1
	}
	slices.Sort(q.others[:n])
	x, known := p.known[q]
	if !known {
		x = p.ask(v, q, n, others, more)
		p.known[q] = x
	}
	return x
}

// ask asks History.
func (p *predictor) ask(v *sched.View, q question, n int, others []sched.JobID, more sched.JobID) float64 {
	use := func(model int16) float64 {
		for _, o := range append(slices.Clone(others), more) {
			if o != sched.None && p.model(v, o) == model {
				return float64(v.Jobs[o].Spec.Util)
			}
		}
		return 0
	}
	p.members = append(p.members[:0], interference.Member{Model: p.models[q.who-1], Use: use(q.who)})
	models := []string{p.models[q.who-1]}
	for _, m := range q.others[:n] {
		p.members = append(p.members, interference.Member{Model: p.models[m-1], Use: use(m)})
		models = append(models, p.models[m-1])
	}
	place := interference.Place{How: p.learner.How, Width: q.width}
	if int(q.typ) < len(v.Types) {
		place.GPU = v.Types[q.typ]
	}
	if oom, err := p.learner.History.Refused(place, models); oom || err != nil {
		return math.Inf(1)
	}
	found, err := p.learner.History.Slowdowns(place, p.members, p.found[:0])
	if p.found = found; err != nil {
		return math.Inf(1)
	}
	worst := found[0].Slow
	for i := range found { // equal models are kept apart by rank: which of them this job is nobody knows
		if models[i] == models[0] {
			worst = max(worst, found[i].Slow)
		}
	}
	return worst
}
