package allocate

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// Rates says what dividing GPUs needs to know of jobs: how fast each goes by width in the phase that it is in, and
// with which batch size. A job of which nothing is known is taken to be rigid at the width that it asks for, and as
// fast as its GPUs are many. Rates remembers nothing but what it need not compute again.
type Rates struct {
	Curves speedup.Source
	Work   sched.Remainer // remaining work, for rules that weigh it; nil = unknown
	// Batch is the rule by which a job has a fixed batch size; nil = the best at each width. It needs a
	// speedup.Batched: under other sources the batch size is that of the curve.
	Batch *elastic.BatchRule
	Seed  uint64 // of elastic.BatchRandom
	LR    LRRule
	Most  int32 // widest any job may be, k_max; 0 = what it says itself
	// Horizon is how far ahead a restart is weighed: a job changes width or batch size if it then has done more by
	// then, (Horizon - Restart) at the new speed against Horizon at the old. 0 = restarts are taken to cost nothing.
	Horizon time.Duration
	Restart func(model string) time.Duration
	// Unsaved says which jobs keep the width that they start with, so that it is the one they ask for.
	Unsaved sched.Unsaved

	factors map[*speedup.Curve][]float64
	perGPU  map[*speedup.Curve]*speedup.Curve
	rigid   [][]float64 // by width; nil = to be made
}

// LRRule says how the learning rate follows the batch size.
type LRRule uint8

// Rules. All are factors on the learning rate at the smallest batch size; see model/speedup.
const (
	LRNone     LRRule = iota // the job chooses it
	LRLinear                 // linear in the batch size
	LRSqrt                   // by its square root
	LRAdaScale               // by what an update is worth, where that is known
)

// mostCurves bounds what is kept of curves, some of which have changed since.
const mostCurves = 1 << 13

// Claim is what a Rule sees of a job.
type Claim struct {
	elastic.Job             // scaling factors, and bounds of the width
	ID          sched.JobID // in the View
	Held        int         // width that it holds, 0 = none
	Stay        float64     // factor there if nothing changes
	// share of its factor that any other width, or batch size, counts for: what a start leaves of the horizon
	Move float64
	Left float64 // seconds of work left, in time on one GPU: Left/S[k] on k of them; 0 = unknown
	Must bool    // it has its fewest GPUs at least, of whatever rule; those of all who must fit

	rank  int            // in the order
	curve *speedup.Curve // nil = unknown
}

// claim returns what there is to know of job j.
func (r *Rates) claim(v *sched.View, j sched.JobID) Claim {
	job := &v.Jobs[j]
	c := Claim{ID: j, Held: len(job.Target), Move: 1, curve: r.curve(v, j)}
	spec, widths := job.Spec, r.Unsaved.Widths(job)
	if widths != spec.GPUs && !c.possible(r, widths.Want) {
		c.curve = nil
	}
	if c.curve == nil {
		c.Job = elastic.Job{S: r.rigidly(spec.GPUs.Want), Min: int(spec.GPUs.Want), Max: int(spec.GPUs.Want)}
	} else {
		c.Job = elastic.Job{S: r.factorsOf(c.curve), Min: int(widths.Min), Max: int(widths.Max)}
		if r.Most > 0 {
			c.Max = max(c.Min, min(c.Max, int(r.Most)))
		}
	}
	if r.Horizon > 0 {
		left := 1 - r.Restart(spec.Model).Seconds()/r.Horizon.Seconds()
		c.Move = max(left, leastMove)
	}
	if c.Held > 0 && c.Held < len(c.S) {
		c.Stay = r.stay(v, j, &c)
	}
	if r.Work != nil {
		c.Left = r.Work.Remaining(v, j).Seconds() * c.asked(job.Unit())
	}
	return c
}

// possible reports whether a speed is known on so many GPUs.
func (c *Claim) possible(r *Rates, gpus int32) bool {
	if c.curve == nil {
		return false
	}
	s := r.factorsOf(c.curve)
	return int(gpus) < len(s) && s[gpus] > 0
}

// leastMove keeps a width possible although the restart takes all of the horizon.
const leastMove = 1. / 1024

// asked returns the factor at the width in whose time work is counted: the one asked for, or the next that is possible.
// Where no speed is known it is that width, which need not be the one that its user wants since; see rigidly.
func (c *Claim) asked(want int32) float64 {
	if c.curve == nil {
		return float64(want)
	}
	for k := int(want); k < len(c.S); k++ {
		if c.S[k] > 0 {
			return c.S[k]
		}
	}
	return 1
}

// stay returns the factor of job j if neither width nor batch size change.
func (r *Rates) stay(v *sched.View, j sched.JobID, c *Claim) float64 {
	best, at := c.S[c.Held], c.Held
	if c.curve == nil || best == 0 || r.sameBatch(&v.Jobs[j].Config, c.curve, at) {
		return best
	}
	b, ok := r.Curves.(speedup.Batched)
	if !ok {
		return best // how fast it goes now is not considered
	}
	limits := sched.BatchRange{Min: v.Jobs[j].Batch, Max: v.Jobs[j].Batch, PerGPU: v.Jobs[j].Spec.Batch.PerGPU}
	chain, phase, _ := b.Within(v, j, limits)
	return best * chain[phase].Speed[at] / c.curve.Speed[at]
}

// sameBatch reports whether a job under c runs as the curve says for a width.
func (r *Rates) sameBatch(c *sched.Config, curve *speedup.Curve, width int) bool {
	best := configOf(curve, width)
	return c.Batch == best.Batch && max(c.Accum, 1) == max(best.Accum, 1)
}

func configOf(curve *speedup.Curve, width int) (c sched.Config) {
	if width < len(curve.Batch) {
		c.Batch = curve.Batch[width]
	}
	if width < len(curve.Accum) && curve.Accum[width] > 1 {
		c.Accum = curve.Accum[width]
	}
	return c
}

// config returns how a job is to run on so many GPUs. Whoever keeps its width keeps its batch size too, unless changing
// it is worth a restart.
func (r *Rates) config(v *sched.View, c *Claim, width int) sched.Config {
	job := &v.Jobs[c.ID]
	if c.curve == nil {
		return sched.Config{}
	}
	if width == c.Held && (r.sameBatch(&job.Config, c.curve, width) || r.Horizon > 0 && c.Stay >= c.S[width]*c.Move) {
		return job.Config
	}
	conf := configOf(c.curve, width)
	conf.LRScale = r.lrScale(v, c.ID, conf.Batch)
	return conf
}

// lrScale returns the factor on the learning rate with a batch size, 0: the job chooses it.
func (r *Rates) lrScale(v *sched.View, j sched.JobID, batch int32) float32 {
	b, known := r.Curves.(speedup.Batched)
	start := int(v.Jobs[j].Spec.Batch.Min)
	if known {
		if sizes := b.BatchSizes(v.Jobs[j].Spec); len(sizes) > 0 {
			start = sizes[0]
		}
	}
	if batch <= 0 || start <= 0 {
		return 0
	}
	switch r.LR {
	case LRLinear:
		return float32(speedup.LinearLR(int(batch), start))
	case LRSqrt:
		return float32(speedup.SquareRootLR(int(batch), start))
	case LRAdaScale:
		if known {
			return float32(b.Gain(v, j, int(batch)))
		}
	}
	return 0
}

// curve returns how fast job j goes by width now, nil if nothing is known or there is nothing to choose.
func (r *Rates) curve(v *sched.View, j sched.JobID) *speedup.Curve {
	b, ok := r.Curves.(speedup.Batched)
	spec := v.Jobs[j].Spec
	if !ok && spec.GPUs.Min == spec.GPUs.Max {
		return nil
	}
	chain, phase, _ := r.Curves.Chain(v, j)
	if chain == nil {
		return nil
	}
	if !ok || r.Batch == nil {
		return &chain[phase].Curve
	}
	sizes := b.BatchSizes(spec)
	if len(sizes) == 0 {
		return &chain[phase].Curve
	}
	within := func(size int) speedup.Chain {
		c, _, _ := b.Within(v, j, sched.BatchRange{Min: int32(size), Max: int32(size), PerGPU: spec.Batch.PerGPU})
		return c
	}
	if *r.Batch == elastic.BatchPerGPU {
		return r.growing(&chain[phase].Curve, sizes, func(size int) *speedup.Curve {
			return &within(size)[phase].Curve
		})
	}
	draw := rand.New(rand.NewPCG(r.Seed, uint64(j))).Float64()
	all := elastic.Batches{Min: sizes[0], Max: sizes[len(sizes)-1]}
	fixed := all.Fixed(*r.Batch, draw, sizes, func(size int) float64 { return within(size)[0].Speed[spec.GPUs.Want] })
	return &within(snap(sizes, fixed))[phase].Curve
}

// growing returns the curve on which the batch size grows with the GPUs, from the smallest on one.
func (r *Rates) growing(of *speedup.Curve, sizes []int, within func(size int) *speedup.Curve) *speedup.Curve {
	if c := r.perGPU[of]; c != nil {
		return c
	}
	n := len(of.Speed)
	c := &speedup.Curve{Speed: make([]float64, n), Batch: make([]int32, n), Accum: make([]int16, n)}
	all := elastic.Batches{Min: sizes[0], Max: sizes[len(sizes)-1]}
	for k := 1; k < n; k++ {
		at := within(snap(sizes, all.At(elastic.BatchPerGPU, all.Min, k)))
		conf := configOf(at, k)
		c.Speed[k], c.Batch[k], c.Accum[k] = at.Speed[k], conf.Batch, conf.Accum
	}
	if len(r.perGPU) >= mostCurves || r.perGPU == nil {
		r.perGPU = make(map[*speedup.Curve]*speedup.Curve)
	}
	r.perGPU[of] = c
	return c
}

// snap returns the largest of the ascending sizes that is at most size.
func snap(sizes []int, size int) int {
	i, found := slices.BinarySearch(sizes, size)
	if !found && i > 0 {
		i--
	}
	return sizes[i]
}

func (r *Rates) factorsOf(c *speedup.Curve) []float64 {
	s, ok := r.factors[c]
	if !ok {
		if len(r.factors) >= mostCurves || r.factors == nil {
			r.factors = make(map[*speedup.Curve][]float64)
		}
		s = elastic.Factors(nil, c.Speed)
		r.factors[c] = s
	}
	return s
}

// rigidly returns the factors of a job that only runs on so many GPUs; none for one that asks for more than there can
// be.
func (r *Rates) rigidly(gpus int32) []float64 {
	if gpus > elastic.MaxGPUs {
		return nil
	}
	for int(gpus) >= len(r.rigid) {
		r.rigid = append(r.rigid, nil)
	}
	if r.rigid[gpus] == nil {
		r.rigid[gpus] = make([]float64, gpus+1)
		r.rigid[gpus][gpus] = float64(gpus)
	}
	return r.rigid[gpus]
}
