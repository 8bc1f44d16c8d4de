package straggler

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Params say how a Detector judges. Zero values mean the defaults.
type Params struct {
	Margin float64       // least slow-down worth a word, as a share; 0 = 0.05
	Memory time.Duration // how long a slow attempt that is over goes on counting unless its GPUs are cleared; 0 = 2 h
}

// withDefaults fills in the defaults, ours: 5 % is what PAL lets a GPU be slower to spare a node; slow-downs of
// computation are said to last minutes, those of communication half an hour (Greyhound), some last hours.
func (p Params) withDefaults() Params {
	if p.Margin == 0 {
		p.Margin = 0.05
	}
	if p.Memory == 0 {
		p.Memory = 2 * time.Hour
	}
	return p
}

// Kind is what attempts must have in common for their step times to be compared.
type Kind struct {
	Model       string // "" = unknown: compared with others that are unknown
	GPUs, Nodes int32  // width, and nodes it is on
}

// Check is what a report says of one GPU.
type Check struct {
	GPU    sched.GPUID
	Factor float64 // time of a step over what was expected; 1 where the GPU was found as fast as it should be
	Share  float64 // of the blame: 1 = this GPU, or all of its node or rack; 1/k = one of k
}

// Detector finds slow GPUs. Its methods are called in order of time. The same calls give the same checks, also across
// Save and Load; so do step times in another unit, job by job (rounding aside).
type Detector struct {
	p      Params
	gpus   []gpu
	nodes  []site
	widest int32 // GPUs of the largest node
	kinds  map[Kind]int32
	peers  []cohort // by kind
	noise  noise    // of all reports
	live   []*attempt
	past   [][]past    // by JobID
	cases  []*incident // slow attempts, in order of start
	out    []Check
	tally  tally // scratch of blame
	mids   []float64
}

// gpu is what is known of one GPU.
type gpu struct {
	node   int32      // None = unknown
	clear  sched.Time // it was seen healthy last; None = never
	marked int8       // good checks it is still owed
}

// site is a node.
type site struct {
	rack int32 // 0 = unknown
	gpus []sched.GPUID
}

// New returns a detector that knows no GPU yet.
func New(p Params) (*Detector, error) {
	p = p.withDefaults()
	if !(p.Margin > 0 && p.Margin <= 1) {
		return nil, fmt.Errorf("straggler: Margin %v, want a number in (0, 1]", p.Margin)
	}
	if p.Memory <= 0 {
		return nil, fmt.Errorf("straggler: Memory %v, want > 0", p.Memory)
	}
	return &Detector{p: p, kinds: make(map[Kind]int32)}, nil
}

// Node says that GPUs first..first+n-1 are those of a node, in the given rack (0 = unknown). All must be reported
// before an attempt uses them; hearing it again changes nothing but the rack.
func (d *Detector) Node(node sched.NodeID, rack int32, first sched.GPUID, n int) {
	for int(node) >= len(d.nodes) {
		d.nodes = append(d.nodes, site{})
	}
	for int(first)+n > len(d.gpus) {
		d.gpus = append(d.gpus, gpu{node: sched.None, clear: sched.None})
	}
	d.widest = max(d.widest, int32(n))
	d.nodes[node] = site{rack: rack, gpus: make([]sched.GPUID, n)}
	for i := range n {
		g := first + sched.GPUID(i)
		d.nodes[node].gpus[i] = g
		d.gpus[g].node = int32(node)
	}
}

// Begin says that an attempt of job j runs on gpus, which it copies. expected is what is known beforehand to make its
// steps longer than those of others of its kind, such as PM scores: 1 = nothing; what is no positive number counts
// as 1. An attempt of the job that was running is over. An attempt on a GPU that no Node named is not followed.
func (d *Detector) Begin(now sched.Time, j sched.JobID, k Kind, gpus []sched.GPUID, expected float64) {
	d.End(now, j)
	if len(gpus) == 0 || j < 0 || !d.knows(gpus) {
		return
	}
	for int(j) >= len(d.live) {
		d.live, d.past = append(d.live, nil), append(d.past, nil)
	}
	if !(expected > 0) || math.IsInf(expected, 0) {
		expected = 1
	}
	a := &attempt{job: j, kind: d.kindOf(k), gpus: append([]sched.GPUID(nil), gpus...), expected: math.Log(expected),
		began: now, last: now, rise: now,
		settle: warmUp}
	c := &d.peers[a.kind]
	a.noise = c.noise
	if a.noise.n == 0 {
		a.noise = d.noise
	}
	a.noise.n = min(a.noise.n, borrowed)
	d.expect(a)
	d.live[j] = a
}

// knows reports whether all GPUs are of some node.
func (d *Detector) knows(gpus []sched.GPUID) bool {
	return !slices.ContainsFunc(gpus, func(g sched.GPUID) bool {
		return g < 0 || int(g) >= len(d.gpus) || d.gpus[g].node < 0
	})
}

// End says that the attempt of job j is over. One that was slow goes on speaking against its GPUs until they are
// cleared, or for as long as Params.Memory.
func (d *Detector) End(_ sched.Time, j sched.JobID) {
	if j < 0 || int(j) >= len(d.live) || d.live[j] == nil {
		return
	}
	a := d.live[j]
	if c := d.openCase(j); c != nil {
		c.open = false
	}
	if a.source != unknown && a.settle == 0 && !a.slow {
		d.remember(a)
	}
	d.live[j] = nil
}

// Forget drops what was learned of the step times of job j, which is done.
func (d *Detector) Forget(j sched.JobID) {
	if j >= 0 && int(j) < len(d.past) {
		d.past[j] = nil
	}
}

// Report takes in that a step of job j takes step now, on average since its last report, and returns what follows for
// GPUs, valid until the next call. Left aside are reports of jobs that do not run, step times that are no positive
// finite numbers, and reports not later than the last.
func (d *Detector) Report(now sched.Time, j sched.JobID, step float64) []Check {
	d.out = d.out[:0]
	if j < 0 || int(j) >= len(d.live) || d.live[j] == nil || !(step > 0) || math.IsInf(step, 0) {
		return nil
	}
	a := d.live[j]
	if now <= a.last {
		return nil
	}
	d.learn(a, math.Log(step)-a.expected)
	switch a.feed(now, math.Log(step)-a.expected, d.p.Margin) {
	case anchored:
		d.remember(a)
	case turnedSlow:
		d.accuse(now, a)
	case stillSlow:
		d.uphold(now, a)
	case recovered:
		d.acquit(a)
	case healthy:
		d.clear(a)
	}
	return d.out
}

// factorOf is exp(level), by a function that is the same on every machine.
func factorOf(level float64) float64 { return math.Exp2(level * math.Log2E) }

func (d *Detector) kindOf(k Kind) int32 {
	i, ok := d.kinds[k]
	if !ok {
		i = int32(len(d.peers))
		d.kinds[k] = i
		d.peers = append(d.peers, cohort{kind: k})
	}
	return i
}
