package eaco

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/share"
)

// PairRule says who shares with whom.
type PairRule uint8

// Rules. FIFOPacked serves jobs in order and has the first that does not fit join the single job of equal width next to
// which both together do most, if that is more than 1.5 times one of them; where there is none, all behind it wait.
// Gandiva has a job that does not fit join any single job of equal width, drawn at random, unless together they do less
// than one of them alone; others pass it.
const (
	FIFOPacked PairRule = iota
	Gandiva
)

// Least work of a pair over that of one alone. Source: policies/fifo.py and policies/gandiva.py of Gavel, commit
// c4fa4009.
const (
	packedMore   = 1.5
	gandivaLeast = 1.0
)

// Pairs is fifo_packed or gandiva of Gavel without rounds.
//
// Deviation: Gavel computes all places again every half hour and lets pairs and jobs take turns on the GPUs in rounds;
// here a job stays where it was put until it is done. What its rounds do exactly, package published plays. Pairs need
// consent, and memory for both where it is known.
type Pairs struct {
	share.Core
	rule     PairRule
	seed     uint64
	userGPUs int
	crowd    []sched.JobID
}

// NewPairs returns a system that pairs jobs; seed is that of Gandiva's draws, userGPUs and class are as in
// Params.
func NewPairs(k Known, r PairRule, seed uint64, userGPUs int, class sched.Classer) (*Pairs, error) {
	if k.Work == nil || k.Learner == nil {
		return nil, errors.New("eaco: no knowledge of work or no learner, want both")
	}
	p := &Pairs{Core: share.NewCore(k, share.Rule{Use: math.Inf(1), Memory: 1, Most: 1}), rule: r, seed: seed,
		userGPUs: userGPUs}
	p.ByClass(class)
	return p, nil
}

var (
	_ sched.Decider = (*Pairs)(nil)
	_ sched.Resumer = (*Pairs)(nil)
)

// Resume takes over what the view shows.
func (p *Pairs) Resume(v *sched.View) { p.Prime(v) }

// Observe folds an event.
func (p *Pairs) Observe(v *sched.View, e *sched.Event) { p.Fold(v, e) }

// Format names what is saved.
func (*Pairs) Format() string { return "pairs/1" }

// SaveJob appends what the learner remembers of job j.
func (p *Pairs) SaveJob(j sched.JobID, b []byte) []byte { return p.Know.Learner.SaveJob(j, b) }

// LoadJob takes what SaveJob wrote.
func (p *Pairs) LoadJob(j sched.JobID, b []byte) error { return p.Know.Learner.LoadJob(j, b) }

// Decide serves the queue.
func (p *Pairs) Decide(v *sched.View, out *sched.Desired) {
	if p.Rise(v) || p.Dirty {
		p.Dirty = false
		p.walk(v, out)
	}
	out.WakeBy(p.Rises())
}

// walk goes down the queue.
func (p *Pairs) walk(v *sched.View, out *sched.Desired) {
	full := false       // fifo: someone waits for room, no one passes
	asleep := asleep(v) // GPUs that there is room on once they are awake
	for _, id := range slices.Clone(p.Waiting) {
		j := &v.Jobs[id]
		if p.userGPUs > 0 && p.HeldBy(v, j.Spec.User)+int(j.Spec.GPUs.Want) > p.userGPUs {
			continue
		}
		var set []sched.GPUID
		if !full {
			n := share.Need{GPUs: int(j.Spec.GPUs.Want), Types: j.Spec.Types}
			set = p.First(v, n, func([]sched.GPUID) bool { return true })
		}
		why := sched.Reason{Code: sched.WhyStarted}
		if n := int(j.Spec.GPUs.Want); set == nil && !full && n <= asleep {
			asleep -= n
			continue
		}
		if set == nil {
			partner, ok := p.partner(v, id)
			if ok {
				set, why = p.Held[partner], sched.Reason{Code: sched.WhyPaired, Job: partner}
			} else if p.rule == FIFOPacked {
				return
			}
			full = p.rule == FIFOPacked
		}
		if set != nil {
			p.give(v, id, set, why, out)
		}
	}
}

// asleep returns the GPUs of nodes that sleep.
func asleep(v *sched.View) (n int) {
	for i := range v.Nodes {
		if x := &v.Nodes[i]; x.State == sched.NodeAsleep || x.State == sched.NodeUp && x.Target == sched.NodeAsleep {
			n += x.Spec.GPUs
		}
	}
	return n
}

func (p *Pairs) give(v *sched.View, id sched.JobID, set []sched.GPUID, why sched.Reason, out *sched.Desired) {
	t := out.Give(id, set, why)
	if v.Jobs[id].Spec.Share != sched.ShareNever {
		t.Share = sched.Shared
	}
	p.Put(v, id, set, t.Share == sched.Shared, false)
	p.Queue(v, id, false)
}

// partner returns the job that id is to join.
func (p *Pairs) partner(v *sched.View, id sched.JobID) (best sched.JobID, ok bool) {
	if !joinsOthers(v, id) {
		return 0, false
	}
	p.singles(v, id)
	if p.rule == Gandiva {
		r := rand.New(rand.NewPCG(p.seed, uint64(id)))
		r.Shuffle(len(p.crowd), func(i, j int) { p.crowd[i], p.crowd[j] = p.crowd[j], p.crowd[i] })
	}
	most := packedMore
	for _, o := range p.crowd {
		both := p.together(v, id, o)
		switch {
		case p.rule == Gandiva && both >= gandivaLeast:
			return o, true
		case p.rule == FIFOPacked && both > most:
			best, most, ok = o, both, true
		}
	}
	return best, ok
}

// joinsOthers reports whether job id may share GPUs, and enough is known of it.
func joinsOthers(v *sched.View, id sched.JobID) bool {
	s := v.Jobs[id].Spec
	return s.Share != sched.ShareNever && s.Model != "" && v.ShareLimit >= 2
}

// singles has p.crowd be the jobs that id could join, in order of ids.
func (p *Pairs) singles(v *sched.View, id sched.JobID) {
	p.crowd = p.crowd[:0]
	for g, on := range p.On {
		if len(on) == 1 && p.Held[on[0]][0] == sched.GPUID(g) && p.single(v, on[0]) && p.fits(v, id, on[0]) {
			p.crowd = append(p.crowd, on[0])
		}
	}
	slices.Sort(p.crowd)
}

// together returns the work of jobs id and o on the GPUs of o, over that of one alone.
func (p *Pairs) together(v *sched.View, id, o sched.JobID) float64 {
	at, width := p.Held[o][0], len(p.Held[o])
	return 1/p.Slower(v, at, width, id, nil, o) + 1/p.Slower(v, at, width, o, nil, id)
}

// single reports whether job o shares its GPUs, but with no one yet.
func (p *Pairs) single(v *sched.View, o sched.JobID) bool {
	if len(p.Held[o]) == 0 || !p.Shares[o] || v.Jobs[o].Spec.Model == "" {
		return false
	}
	for _, g := range p.Held[o] {
		if len(p.On[g]) != 1 || !v.Usable(g) {
			return false
		}
	}
	return true
}

// fits reports whether job id may have the GPUs of o.
func (p *Pairs) fits(v *sched.View, id, o sched.JobID) bool {
	a := v.Jobs[id].Spec
	node := &v.Nodes[v.GPUs[p.Held[o][0]].Node].Spec
	return int(a.GPUs.Want) == len(p.Held[o]) && a.Types.Has(node.Type) &&
		p.Know.Fit(v, id, o, float64(node.GPUMemGB))
}
