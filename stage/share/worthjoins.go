package share

import (
	"math"
	"slices"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// Market says what GPUs and jobs are worth.
type Market interface {
	// Worth returns what job j does in a second alone on so many GPUs of a type, in job-seconds, and the price of a GPU
	// of that type; as of the last division.
	Worth(v *sched.View, j sched.JobID, t sched.TypeID, gpus int) (rate, price float64)
	// Kept lists the jobs for which GPUs are kept, in order of ids.
	Kept(dst []sched.JobID) []sched.JobID
}

// Joins has a rigid job that waits, or is about to start on free GPUs, join others where that is worth more:
//
//	r/after - sum over those there of r_i (1/before_i - 1/after_i) + saved/KWh  >  what it is worth elsewhere
//
// with r what a job does in a second alone, before and after how many times slower it is without and with the newcomer,
// and saved the power, in kW, that it would draw on GPUs of its own beyond what it adds here. Elsewhere is r less the
// price of its GPUs where there are free ones; r where GPUs sleep, for which no one else bids; 0 where it must wait.
//
// It is asked after the pipeline. It finds sets and judges trials as EaCO does, and leaves jobs that share where they
// are: the division is not to count them. No one joins while GPUs are kept for a job that cannot join.
//
// Source: ours; docs/papers/combined.md.
type Joins struct {
	*Company
	Market   Market
	KWh      float64 // that an hour's delay of a job is worth, > 0; +Inf = energy is worth nothing
	Sleeps   bool    // idle nodes draw next to nothing
	UserGPUs int     // how many GPUs one user may hold; 0 = no limit

	gain   map[sched.JobID]float64 // of its last join, in job-seconds a second; for people alone
	failed map[shape]bool          // no set was found for such jobs in this decision
	fresh  map[sched.JobID]int     // jobs that start on GPUs that no one left for them: their targets
	kept   []sched.JobID
}

// shape are jobs for which the same sets are found.
type shape struct {
	model string
	gpus  int32
	types sched.TypeSet
	util  float32
	memGB float64
	saves bool
}

var (
	_ sched.Provisioner = (*Joins)(nil)
	_ sched.Observer    = (*Joins)(nil)
	_ sched.Memory      = (*Joins)(nil)
	_ sched.Resumer     = (*Joins)(nil)
	_ sched.Explainer   = (*Joins)(nil)
)

// Format names what is saved.
func (*Joins) Format() string { return "joins/1" }

// Provision ends trials, then has jobs join others.
func (s *Joins) Provision(v *sched.View, d *sched.Desired) {
	if !s.Primed() {
		s.Resume(v)
	}
	s.take(v, d)
	s.Trials(v, d)
	if len(s.Waiting) == 0 || s.closed(v) {
		return
	}
	clear(s.failed)
	for _, id := range slices.Clone(s.Waiting) {
		s.offer(v, id, d)
	}
}

// take notes what was decided already. Whoever starts alone is to be joined by others one day, if it may be: that would
// need a restart else. Its epochs are watched until it is known how long they take.
func (s *Joins) take(v *sched.View, d *sched.Desired) {
	if s.fresh == nil {
		s.fresh, s.failed = make(map[sched.JobID]int), make(map[shape]bool)
		s.gain = make(map[sched.JobID]float64)
	}
	clear(s.fresh)
	for i := range d.Jobs {
		t := &d.Jobs[i]
		if t.At != sched.AtOnce {
			continue
		}
		set := d.Set(t)
		if j := &v.Jobs[t.Job]; len(set) > 0 && len(j.Target) == 0 && s.mayJoin(v, t.Job) {
			t.Share = sched.Shared
			if s.Know.epoch(v, t.Job) <= 0 && !j.Watched {
				d.Watch = append(d.Watch, sched.Watch{Job: t.Job, On: true})
			}
			if !slices.ContainsFunc(set, func(g sched.GPUID) bool { return v.GPUs[g].Targets > 0 }) {
				s.fresh[t.Job] = i
			}
		}
		s.Put(v, t.Job, set, t.Share == sched.Shared, t.Trial)
	}
}

// mayJoin reports whether job id is one that may share GPUs at all.
func (s *Joins) mayJoin(v *sched.View, id sched.JobID) bool {
	g := v.Jobs[id].Spec.GPUs
	return g.Min == g.Max && s.unwilling(v, id) == ""
}

// closed reports whether GPUs are kept for a job that cannot join others: it needs those of jobs that share, too.
func (s *Joins) closed(v *sched.View) bool {
	s.kept = s.Market.Kept(s.kept[:0])
	return slices.ContainsFunc(s.kept, func(id sched.JobID) bool {
		return !s.mayJoin(v, id) || int(v.Jobs[id].Spec.GPUs.Want) > s.largest(v, v.Jobs[id].Spec.Types)
	})
}

// offer has job id join others if that is worth it.
func (s *Joins) offer(v *sched.View, id sched.JobID, d *sched.Desired) {
	at, starts := s.fresh[id]
	if len(s.Held[id]) > 0 && !starts || !s.mayJoin(v, id) || s.overLimit(v, id, starts) {
		return
	}
	j := &v.Jobs[id]
	n := s.NeedOf(v, id, s.Late(v, id))
	k := shape{j.Spec.Model, j.Spec.GPUs.Want, j.Spec.Types, j.Spec.Util, n.MemGB,
		!s.limits.Unsaved.Protects(j)}
	if !n.Share || s.failed[k] {
		return
	}
	own := slices.Clone(s.Held[id])
	s.Put(v, id, nil, false, false)
	found := false
	s.Slack = false
	gain := 0.0
	set := s.First(v, n, func(gpus []sched.GPUID) bool {
		if s.crowd = s.partner(gpus, s.crowd); len(s.crowd) == 0 || s.Admits(v, id, gpus).Code != Admitted {
			return false
		}
		found = true
		gain = s.gains(v, id, gpus, starts)
		return gain > 0
	})
	if set == nil {
		s.failed[k] = !found && j.Spec.Deadline == 0 && !s.Undone(id) && !s.Slack
		if starts {
			s.Put(v, id, own, true, false)
		}
		return
	}
	s.join(v, id, set, gain, d, at, starts)
}

// overLimit reports whether the user of job id would hold too many GPUs.
func (s *Joins) overLimit(v *sched.View, id sched.JobID, starts bool) bool {
	spec := v.Jobs[id].Spec
	return s.UserGPUs > 0 && !starts && s.HeldBy(v, spec.User)+int(spec.GPUs.Want) > s.UserGPUs
}

// join has job id hold set on trial, instead of what it was to start on.
func (s *Joins) join(v *sched.View, id sched.JobID, set []sched.GPUID, gain float64, d *sched.Desired, at int,
	starts bool) {
	s.gain[id] = gain
	if starts {
		delete(s.fresh, id)
		copy(d.Set(&d.Jobs[at]), set)
		t := &d.Jobs[at]
		s.crowd = s.partner(set, s.crowd)
		t.Trial, t.Share = true, sched.Shared
		t.Why = sched.Reason{Code: sched.WhyTrial, Job: s.crowd[0], A: float64(len(s.crowd)), B: gain}
		s.tryOut(id, d)
		s.Put(v, id, set, true, true)
		s.Queue(v, id, false)
		return
	}
	s.Give(v, id, set, true, d)
	d.Jobs[len(d.Jobs)-1].Why.B = gain
}

// gains returns by how much what job id and those there do together is worth more than what they do apart, in
// job-seconds a second.
func (s *Joins) gains(v *sched.View, id sched.JobID, gpus []sched.GPUID, starts bool) float64 {
	typ := v.Nodes[v.GPUs[gpus[0]].Node].Spec.Type
	rate, price := s.Market.Worth(v, id, typ, len(gpus))
	worth := rate / s.slowest(v, id, gpus, sched.None)
	s.crowd = s.partner(gpus, s.crowd)
	for _, o := range s.crowd {
		of, _ := s.Market.Worth(v, o, typ, len(s.Held[o]))
		before, after := s.slowOff(v, o, nil), max(s.slowOff(v, o, gpus), s.slowest(v, o, gpus, id))
		worth -= float64(of * (1/before - 1/after))
	}
	worth += math.Round(1e3*float64(s.saved(v, id, gpus))) / 1e6 / s.KWh
	switch {
	case starts:
		worth -= max(0, rate-float64(price*float64(len(gpus))))
	case s.wakes(v, typ): // the price is of GPUs that are awake
		worth -= rate
	}
	return worth
}

// slowest returns the slow-down of job o on those of gpus that it is on, or is to be, next to who is there and more.
func (s *Joins) slowest(v *sched.View, o sched.JobID, gpus []sched.GPUID, more sched.JobID) float64 {
	width := len(s.Held[o])
	if width == 0 {
		width = len(gpus)
	}
	slow, asked := 1.0, sched.GPUID(-1)
	for _, g := range gpus {
		if more != sched.None && !slices.Contains(s.On[g], o) || asked >= 0 && s.same(v, g, asked) {
			continue
		}
		slow, asked = max(slow, s.ask.slow(v, g, width, o, s.On[g], more)), g
	}
	return slow
}

// wakes reports whether nodes of a type sleep, and could wake up for a job.
func (s *Joins) wakes(v *sched.View, t sched.TypeID) bool {
	return slices.ContainsFunc(v.Nodes, func(n sched.Node) bool {
		return n.Spec.Type == t && n.Spec.Pool == sched.None && n.Target == sched.NodeAsleep
	})
}

// saved returns the power that job id would draw on nodes of its own beyond what it adds to those of gpus.
func (s *Joins) saved(v *sched.View, id sched.JobID, gpus []sched.GPUID) sched.Watts {
	spec := &v.Nodes[v.GPUs[gpus[0]].Node].Spec
	of, use := power.Of(spec), float64(v.Jobs[id].Spec.Util)
	size := max(spec.GPUs, 1)
	alone := float64(len(gpus)/size)*float64(of.At(use)-of.Idle) +
		float64(of.At(float64(use*float64(len(gpus)%size))/float64(size))-of.Idle)
	if s.Sleeps {
		alone += float64(of.Idle) * float64(len(gpus)) / float64(size)
	}
	for len(gpus) > 0 {
		n := v.GPUs[gpus[0]].Node
		k := 0
		for k < len(gpus) && v.GPUs[gpus[k]].Node == n {
			k++
		}
		alone -= float64(s.adds(v, n, gpus[:k], use))
		gpus = gpus[k:]
	}
	return sched.Watts(alone)
}

// adds returns how much more node n draws if some of its GPUs are in use by so much more.
func (s *Joins) adds(v *sched.View, n sched.NodeID, gpus []sched.GPUID, use float64) sched.Watts {
	node := &v.Nodes[n]
	before, after := 0.0, 0.0
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		u := 0.0
		for _, o := range s.On[g] {
			u += float64(v.Jobs[o].Spec.Util)
		}
		before += min(u, 1)
		if slices.Contains(gpus, g) {
			u += use
		}
		after += min(u, 1)
	}
	of, size := power.Of(&node.Spec), float64(node.Spec.GPUs)
	return of.At(after/size) - of.At(before/size)
}

// Explain says how job j gets on next to others, how its trial goes, and what its join was worth; of a rigid one that
// waits which figures of memory keep it from others, where they share by these.
func (s *Joins) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	c := s.Separate(v, j)
	if g := v.Jobs[j].Spec.GPUs; c != nil && c.Queued[j] && g.Min == g.Max && v.ShareLimit > 1 {
		c.ReportMemory(v, j, say)
	}
	if c == nil || len(c.Held[j]) == 0 || c.size(j) < 2 {
		return
	}
	c.ReportHeld(v, j, say)
	if gain, ok := s.gain[j]; ok {
		say(sched.Fact{Name: "worth-more-together", Value: gain, Unit: "job-seconds a second"})
	}
}
