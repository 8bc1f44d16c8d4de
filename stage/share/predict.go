package share

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// Known is what is known of jobs in addition to what they say of themselves.
type Known struct {
	Work    sched.Remainer             // of jobs alone; needed
	Restart func(string) time.Duration // what a restart costs, by model; nil = nothing
	Learner *interference.Learner      // history of sets; needed
	// Capped is how much longer a job takes under the power cap that it will be given than without; nil = there are
	// none. What jobs do to each other comes on top.
	Capped func(*sched.JobSpec) float64
	// Timed: an epoch alone takes what epochs of the model took alone, 0 = unknown until one was timed. Work is then an
	// estimate, of which no epoch is made.
	Timed bool
	// Peaks say how much memory jobs have at most: they share a GPU only where that is known of each and all of it fits
	// with footprint.Margin. nil = by what their submitters say, exactly.
	Peaks *footprint.Peaks
}

// memory returns how much device memory job id is taken to have at most on one GPU, in GB; 0 = unknown.
func (k *Known) memory(v *sched.View, id sched.JobID) float64 {
	if k.Peaks == nil {
		return float64(v.Jobs[id].Spec.GPUMemGB)
	}
	gb, _ := k.Peaks.Of(v, id)
	return gb
}

// Room returns how much memory a job takes of a GPU that others have, where so much is its peak, in GB.
func (k *Known) Room(gb float64) float64 {
	if k.Peaks == nil {
		return gb
	}
	return gb * footprint.Margin
}

// Fit reports whether jobs a and b fit on a GPU of so much memory, in GB.
func (k *Known) Fit(v *sched.View, a, b sched.JobID, gpuGB float64) bool {
	x, y := k.memory(v, a), k.memory(v, b)
	if known := x > 0 && y > 0 && gpuGB > 0; !known {
		return k.Peaks == nil
	}
	return k.Room(x+y) <= gpuGB
}

// capped returns how much longer job id takes under its power cap.
func (k *Known) capped(v *sched.View, id sched.JobID) float64 {
	if k.Capped == nil {
		return 1
	}
	return k.Capped(v.Jobs[id].Spec)
}

// epoch returns how long an epoch of job id takes alone under its cap, 0 if it has none.
func (k *Known) epoch(v *sched.View, id sched.JobID) time.Duration {
	j := &v.Jobs[id]
	switch {
	case j.Spec.Epochs == 0:
		return 0
	case k.Timed:
		return k.timed(v, j)
	}
	work := max((j.WorkNow(v.Now)+k.Work.Remaining(v, id))/time.Duration(j.Spec.Epochs), 0)
	return time.Duration(float64(work) * k.capped(v, id))
}

// timed returns how long epochs of the model of j took alone: where it is to run, else on the first node of a type that
// it accepts.
func (k *Known) timed(v *sched.View, j *sched.Job) time.Duration {
	place := interference.Place{}
	if len(j.Target) > 0 {
		place = interference.PlaceOf(v, j.Target[0], len(j.Target))
	} else if i := slices.IndexFunc(v.Nodes, func(n sched.Node) bool { return j.Spec.Types.Has(n.Spec.Type) }); i >= 0 {
		place = interference.PlaceOf(v, v.Nodes[i].First, int(j.Spec.GPUs.Want))
	}
	took, _ := k.Learner.Alone(place, j.Spec.Model)
	return took
}

// surer are those who estimate the work of some jobs by what jobs alike took, and know that of others.
type surer interface {
	Sure(v *sched.View, j sched.JobID) bool
}

// sureEpoch is epoch where that is known, else 0.
func (k *Known) sureEpoch(v *sched.View, id sched.JobID) time.Duration {
	if s, ok := k.Work.(surer); ok && !s.Sure(v, id) {
		return 0
	}
	return k.epoch(v, id)
}

// finish returns when job id is done if it is slow times slower from now on than alone under its cap: where it runs, or
// started now.
func (k *Known) finish(v *sched.View, id sched.JobID, slow float64) sched.Time {
	j, from := &v.Jobs[id], v.Now
	switch {
	case j.Attempt == sched.Running && j.WorkFrom > from:
		from = j.WorkFrom
	case !j.HoldsDevices() && j.Attempts > 0 && k.Restart != nil:
		from = from.Add(k.Restart(j.Spec.Model))
	}
	work := float64(max(k.Work.Remaining(v, id), 0)) * k.capped(v, id) * slow
	if !(work < float64(sched.Never)/2) {
		return sched.Never
	}
	return from.Add(time.Duration(work))
}

// predictor answers what History says of sets, and keeps the answers until something is learned.
type predictor struct {
	learner *interference.Learner
	changes int // of History, up to which known and worst hold
	known   map[question]float64
	worst   [interference.MaxSet + 1]float64

	number  map[interference.Member]int32
	list    []interference.Member // by number
	jobs    []numbers             // by job
	members []interference.Member // scratch
	models  []string
	found   []interference.Estimate
}

// numbers are those of a job as a member of sets: of its model, and of its model with its use. 0 = not asked yet.
type numbers struct{ model, used int32 }

// question asks how much slower a job is, who is it and others being those next to it by their numbers. Its fields are
// of one size, so that it is hashed at once.
type question struct {
	kind   gpuKind
	width  int32
	who    int32
	others [interference.MaxSet - 1]int32 // sorted, then zeros
}

// gpuKind is a type of GPU and a mechanism by which it is shared: what was measured of one kind says nothing of
// another.
type gpuKind int32

// kindOf returns the kind of GPU g.
func kindOf(v *sched.View, g sched.GPUID) gpuKind {
	n := &v.Nodes[v.GPUs[g].Node].Spec
	return gpuKind(n.Type)<<8 | gpuKind(n.Sharing)
}

func (k gpuKind) how() sched.Mechanism { return sched.Mechanism(k & 0xff) }

// maxKnown bounds the answers kept.
const maxKnown = 1 << 16

func newPredictor(l *interference.Learner) *predictor {
	p := &predictor{learner: l, changes: -1, number: make(map[interference.Member]int32),
		list: make([]interference.Member, 1), known: make(map[question]float64)}
	return p
}

// refresh drops what was answered before something was learned.
func (p *predictor) refresh() {
	h := p.learner.History
	if p.changes == h.Changes() && len(p.known) < maxKnown {
		return
	}
	p.changes = h.Changes()
	clear(p.known)
	for n := range p.worst {
		p.worst[n] = h.Worst(n)
	}
}

// worstOf returns what sets of n jobs were slowed by at most.
func (p *predictor) worstOf(n int) float64 {
	p.refresh()
	return p.worst[min(n, len(p.worst)-1)]
}

// numberOf returns the number of job id on GPUs of a kind. Under time-slicing use is of no account: jobs of a model are
// one.
func (p *predictor) numberOf(v *sched.View, id sched.JobID, how sched.Mechanism) int32 {
	for len(p.jobs) < len(v.Jobs) {
		p.jobs = append(p.jobs, numbers{})
	}
	n := &p.jobs[id]
	if n.model == 0 {
		s := v.Jobs[id].Spec
		n.model, n.used = p.of(interference.Member{Model: s.Model}),
			p.of(interference.Member{Model: s.Model, Use: float64(s.Util)})
	}
	if how == sched.TimeSlicing {
		return n.model
	}
	return n.used
}

// of returns the number of a member.
func (p *predictor) of(m interference.Member) int32 {
	n, known := p.number[m]
	if !known {
		n = int32(len(p.list))
		p.number[m], p.list = n, append(p.list, m)
	}
	return n
}

// slow returns how much slower job id, width GPUs wide, is than alone next to others on GPUs like g; itself among
// others does not count. +Inf: together they ran out of memory before, or nothing can be said of so many.
func (p *predictor) slow(v *sched.View, g sched.GPUID, width int, id sched.JobID, others []sched.JobID,
	more sched.JobID) float64 {
	k := kindOf(v, g)
	q, n := question{kind: k, width: int32(width), who: p.numberOf(v, id, k.how())}, 0
	for i := range len(others) + 1 {
		o := more
		if i < len(others) {
			o = others[i]
		}
		switch {
		case o == id || o == sched.None:
			continue
		case n == len(q.others):
			return math.Inf(1)
		}
		q.others[n] = p.numberOf(v, o, k.how())
		n++
	}
	if n == 0 {
		return 1
	}
	if n > 1 {
		slices.Sort(q.others[:n])
	}
	p.refresh()
	x, known := p.known[q]
	if !known {
		x = p.ask(interference.PlaceOf(v, g, width), &q, n)
		p.known[q] = x
	}
	return x
}

// ask asks History; n jobs are next to the one in question.
func (p *predictor) ask(place interference.Place, q *question, n int) float64 {
	p.members, p.models = p.members[:0], p.models[:0]
	for i := range n + 1 {
		m := &p.list[q.who]
		if i > 0 {
			m = &p.list[q.others[i-1]]
		}
		p.members, p.models = append(p.members, *m), append(p.models, m.Model)
	}
	h := p.learner.History
	if oom, err := h.Refused(place, p.models); oom || err != nil {
		return math.Inf(1)
	}
	found, err := h.Slowdowns(place, p.members, p.found[:0])
	if p.found = found; err != nil {
		return math.Inf(1)
	}
	worst := found[0].Slow
	for i := range found { // equal models are kept apart by rank: which of them this job is no one knows
		if p.models[i] == p.models[0] {
			worst = max(worst, found[i].Slow)
		}
	}
	return worst
}

// Slower returns how much slower job id, width GPUs wide, is than alone next to others on GPUs like g.
func (c *Core) Slower(v *sched.View, g sched.GPUID, width int, id sched.JobID, others []sched.JobID,
	more sched.JobID) float64 {
	return c.ask.slow(v, g, width, id, others, more)
}
