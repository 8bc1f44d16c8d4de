package straggler

import (
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// noise is the scale of what successive reports of an attempt differ by: the running median of the differences. A
// change of level is one difference, so it does not count.
type noise struct {
	mid float64 // median of the differences; 0 = none seen
	n   int64   // differences
}

// How noise is learned: a difference above the median raises it by 1/n, at least slowest, one below lowers it.
const (
	slowest  = 0.02
	borrowed = 8    // differences that noise learned elsewhere counts for
	quiet    = 1e-3 // no one's step times repeat to better than that
	unheard  = 0.05 // before anything was heard
)

func (s *noise) learn(difference float64) {
	if s.n++; s.n == 1 && s.mid == 0 {
		s.mid = max(difference, quiet)
		return
	}
	step := 1 + max(slowest, 1/float64(s.n))
	if difference > s.mid {
		s.mid *= step
	} else {
		s.mid = max(s.mid/step, quiet/2)
	}
}

// sigma is the standard deviation of a report: that of a difference is sqrt(2) times as much, and the median of its
// size 0.6745 of this, if the noise is normal.
func (s *noise) sigma() float64 {
	if s.n == 0 {
		return unheard
	}
	return max(quiet, s.mid/(0.6745*math.Sqrt2))
}

// learn takes in the noise of one report, before it is fed.
func (d *Detector) learn(a *attempt, level float64) {
	if a.n == 0 {
		return
	}
	x := math.Abs(level - a.recent[(a.n-1)%warmUp])
	a.noise.learn(x)
	d.peers[a.kind].noise.learn(x)
	d.noise.learn(x)
}

// maxPeers is how many jobs of a kind are remembered, the last ones; fewPeers how many others it takes to compare.
const (
	maxPeers = 32
	fewPeers = 4
)

// cohort is what jobs of a kind take for a step when they are healthy, over what was expected of each.
type cohort struct {
	kind  Kind
	noise noise
	jobs  []sched.JobID // the oldest first
	refs  []float64
}

// add notes the reference of a job, in the place of an earlier one.
func (c *cohort) add(j sched.JobID, ref float64) {
	i := slices.Index(c.jobs, j)
	if i < 0 && len(c.jobs) == maxPeers {
		i = 0
	}
	if i >= 0 {
		c.jobs, c.refs = slices.Delete(c.jobs, i, i+1), slices.Delete(c.refs, i, i+1)
	}
	c.jobs, c.refs = append(c.jobs, j), append(c.refs, ref)
}

// middle returns the median of all jobs but j and by how much one differs from it; ok is false where they are too few.
// The scale is 1.4826 MAD, but half the range where that could be small by chance.
func (c *cohort) middle(j sched.JobID) (ref, scale float64, ok bool) {
	var room, away [maxPeers]float64
	others := room[:0]
	for i, ref := range c.refs {
		if c.jobs[i] != j {
			others = append(others, ref)
		}
	}
	if len(others) < fewPeers {
		return 0, 0, false
	}
	ref = median(others)
	if len(others) < 2*fewPeers {
		return ref, (slices.Max(others) - slices.Min(others)) / 2, true
	}
	for i, x := range others {
		away[i] = math.Abs(x - ref)
	}
	return ref, 1.4826 * median(away[:len(others)]), true
}

// middleOfKinds returns what a kind of which too little is known should take, by what others do that are as near
// together: the median of the kinds of its model, where there are enough, else of all, and half the range of these.
// Where kinds differ the scale is so large that nothing follows. It says nothing of a gang on more nodes than it needs:
// what that costs depends on the model, and how it costs is known least.
func (d *Detector) middleOfKinds(kind int32, j sched.JobID) (ref, scale float64, ok bool) {
	own := d.peers[kind].kind
	near := d.apart(own)
	if near == scattered {
		return 0, 0, false
	}
	for _, sameModel := range [...]bool{true, false} {
		d.mids = d.mids[:0]
		for k := range d.peers {
			c := &d.peers[k]
			if len(c.refs) == 0 || d.apart(c.kind) != near || sameModel && c.kind.Model != own.Model ||
				len(c.jobs) == 1 && c.jobs[0] == j {
				continue
			}
			d.mids = append(d.mids, median(c.refs))
		}
		if n := len(d.mids); n >= fewPeers {
			return median(d.mids), (slices.Max(d.mids) - slices.Min(d.mids)) / 2, true
		}
	}
	return 0, 0, false
}

// distance says how near together a gang is.
type distance uint8

const (
	together  distance = iota // on one node
	wide                      // on as few nodes as it needs
	scattered                 // on more
)

func (d *Detector) apart(k Kind) distance {
	switch {
	case k.Nodes <= 1:
		return together
	case k.Nodes <= (k.GPUs+d.widest-1)/d.widest:
		return wide
	}
	return scattered
}

// past is what a job took for a step in one shape.
type past struct {
	kind   int32
	ref    float64
	weight int // reports behind ref
}

// history returns what earlier attempts of job j of the kind took, nil if there were none.
func (d *Detector) history(j sched.JobID, kind int32) *past {
	for i := range d.past[j] {
		if p := &d.past[j][i]; p.kind == kind {
			return p
		}
	}
	return nil
}

// remember notes the reference of an attempt for later ones of the job and for others of the kind.
func (d *Detector) remember(a *attempt) {
	d.peers[a.kind].add(a.job, a.ref)
	if p := d.history(a.job, a.kind); p != nil {
		p.ref, p.weight = a.ref, a.weight
		return
	}
	d.past[a.job] = append(d.past[a.job], past{a.kind, a.ref, a.weight})
}
