package speedup

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Learned is a Source that knows nothing but the events it has seen. It pools what jobs of equal application
// (JobSpec.Model), asked width and batch range report: rates of work by GPUs, nodes and batch size they ran on, and the
// work of those that finished. Jobs of different asked width count work in different units, and are not pooled.
//
// A width that was measured packed has its measured rate. Others follow from a fit of Overlap to all that was measured, made
// whenever a job runs in a new way or there are twice as many reports as at the last, and on what work means: on the GPUs asked for, packed, a job has rate 1. What was not observed is taken to cost nothing, so that
// little data makes a hopeful curve: its end is to be tried, not trusted. Batch sizes below or above are not weighed
// against each other by what they are worth: a rate is work, in which lost efficiency is lost time. A width on which the
// usual batch size does not fit (BatchRange.PerGPU) is not possible unless it was seen.
//
// A chain has one phase: rates are averages over the training. Its size is the mean work of the jobs that finished; as
// long as none has, AssumedSeconds. Its unit of progress is a second of work.
//
// Jobs without an application are unknown. Slow GPUs and neighbours on shared GPUs count as if they belonged to the width.
type Learned struct {
	perNode, maxGPUs int
	pools            map[poolKey]*pool
	blank            map[poolKey]Chain // of pools of which nothing is known: they follow from the key
}

var (
	_ Source         = (*Learned)(nil)
	_ sched.Observer = (*Learned)(nil)
	_ sched.Memory   = (*Learned)(nil)
)

// How rates are learned. The weight is that of the authors' code of BOA for gradient statistics; the others are ours.
const (
	AssumedSeconds = 3600 // work of a job before one of its kind has finished
	leastWeight    = 0.1  // of a new report in the mean of its cell
	notable        = 0.05 // a mean that has moved by less than this share is told as before
	maxPools       = 4096 // kinds of jobs of which something is learned: nothing is of further ones
	maxCells       = 4096 // of a pool: further ones are not learned
	minRate        = 1e-9 // smaller rates are not learned, nor those above maxRate
)

// poolKey says which jobs learn from each other.
type poolKey struct {
	model string
	want  int32
	batch sched.BatchRange
}

// pool is what is known of them.
type pool struct {
	finished int64
	work     float64 // mean of the finished, in seconds
	reports  int64
	fitted   int64   // reports when model was fitted; 0 = it was not
	model    Overlap // of what was not measured
	cells    map[cell]*rate
	curve    Curve // follows from model and cells; zero = to be made
	chain    Chain // follows from the curve and the finished; nil = to be made
}

// cell is a way to have run. Batch 0 = the job's own affair.
type cell struct{ gpus, nodes, batch int32 }

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.gpus, d.gpus), cmp.Compare(c.nodes, d.nodes), cmp.Compare(c.batch, d.batch))
}

// rate is a harmonic mean of reports, for as much work is done slowly as fast: the plain one of the first, then one in which
// old reports fade.
type rate struct {
	n    int64
	mean float64
	told float64 // mean as of the last notable change
}

// NewLearned returns a Learned that has seen nothing, for a cluster of nodes with gpusPerNode GPUs. Its chains have widths
// up to maxGPUs.
func NewLearned(gpusPerNode, maxGPUs int) *Learned {
	return &Learned{perNode: gpusPerNode, maxGPUs: maxGPUs, pools: make(map[poolKey]*pool), blank: make(map[poolKey]Chain)}
}

// Observe takes in a rate that a job reports, or that a job has finished.
func (l *Learned) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted, sched.Progressed:
		l.reported(v, e)
	case sched.AttemptEnded:
		job := &v.Jobs[e.Job]
		if e.Outcome != sched.Finished || job.Spec.Model == "" || e.Work <= 0 {
			return
		}
		p := l.pool(job.Spec)
		p.finished++
		p.work += (e.Work.Seconds() - p.work) / float64(p.finished)
		p.chain = nil
	}
}

func (l *Learned) reported(v *sched.View, e *sched.Event) {
	job := &v.Jobs[e.Job]
	if job.Spec.Model == "" || len(job.GPUs) == 0 || !(e.Rate >= minRate && e.Rate <= maxRate) {
		return
	}
	p, key := l.pool(job.Spec), keyOf(job.Spec)
	at := cell{int32(len(job.GPUs)), nodesOf(v, job.GPUs), job.Live.Batch}
	r := p.cells[at]
	if r == nil {
		if len(p.cells) == maxCells {
			return
		}
		r = &rate{}
		p.cells[at] = r
	}
	r.n++
	if r.n == 1 {
		r.mean = e.Rate
	} else {
		pace := 1/r.mean + float64(max(1/float64(r.n), leastWeight)*(1/e.Rate-1/r.mean))
		r.mean = 1 / pace
	}
	if math.Abs(r.mean-r.told) > notable*r.told {
		r.told, p.curve, p.chain = r.mean, Curve{}, nil
	}
	if p.reports++; r.n == 1 || p.reports >= 2*p.fitted {
		l.fit(key, p)
	}
}

// fit has the model of p follow from what was measured.
func (l *Learned) fit(key poolKey, p *pool) {
	timings := p.timings(l.nominal(key, p))
	if p.fitted == 0 {
		p.model = FitOverlap(timings)
	} else {
		p.model = p.model.refit(timings)
	}
	p.fitted, p.curve, p.chain = p.reports, Curve{}, nil
}

// nodesOf counts the nodes of gpus, which are in order: those of a node lie side by side.
func nodesOf(v *sched.View, gpus []sched.GPUID) (n int32) {
	last := sched.NodeID(sched.None)
	for _, g := range gpus {
		if node := v.GPUs[g].Node; node != last {
			n, last = n+1, node
		}
	}
	return n
}

func keyOf(spec *sched.JobSpec) poolKey { return poolKey{spec.Model, spec.GPUs.Want, spec.Batch} }

// pool returns what is known of jobs like spec; what is told of more kinds than are kept goes into one that is forgotten.
func (l *Learned) pool(spec *sched.JobSpec) *pool {
	key := keyOf(spec)
	p := l.pools[key]
	if p == nil {
		p = &pool{cells: make(map[cell]*rate)}
		if len(l.pools) < maxPools {
			l.pools[key] = p
		}
	}
	return p
}

// Chain returns what is known of job j, nil if it names no application. The share done is that of the mean job of its kind.
func (l *Learned) Chain(v *sched.View, j sched.JobID) (c Chain, phase int, done float64) {
	job := &v.Jobs[j]
	if job.Spec.Model == "" {
		return nil, 0, 0
	}
	c, size := l.chain(keyOf(job.Spec))
	return c, 0, min(1, job.WorkNow(v.Now).Seconds()/size)
}

// chain returns the chain of a pool, and its size. Asking for one of which nothing is known leaves no trace.
func (l *Learned) chain(key poolKey) (c Chain, size float64) {
	p := l.pools[key]
	if p == nil {
		return l.chainOfNothing(key), AssumedSeconds
	}
	if p.curve.Speed == nil {
		p.curve = l.curve(key, p)
		if p.fitted == 0 { // jobs have finished, and reported nothing
			p.curve = l.chainOfNothing(key)[0].Curve
		}
	}
	if p.chain == nil {
		p.chain = Chain{{Size: p.size(), Curve: p.curve}}
	}
	return p.chain, p.size()
}

func (l *Learned) chainOfNothing(key poolKey) Chain {
	if l.blank[key] == nil {
		if len(l.blank) >= maxPools {
			clear(l.blank)
		}
		nothing := &pool{}
		nothing.model = Overlap{}.refit(nothing.timings(l.nominal(key, nothing))) // one timing: a short search finds it
		l.blank[key] = Chain{{Size: AssumedSeconds, Curve: l.curve(key, nothing)}}
	}
	return l.blank[key]
}

func (p *pool) size() float64 {
	if p.finished == 0 {
		return AssumedSeconds
	}
	return p.work
}

// nominal is how jobs run on what they ask for.
func (l *Learned) nominal(key poolKey, p *pool) cell {
	at := cell{key.want, int32(ceilDiv(int(key.want), l.perNode)), p.usualBatch()}
	if key.batch.Min == key.batch.Max {
		at.batch = key.batch.Max
	}
	return at
}

// curve tells measured widths as they are and the others by the fitted model.
func (l *Learned) curve(key poolKey, p *pool) Curve {
	nominal := l.nominal(key, p)
	samples := nominal.samples(nominal)
	c := Curve{Speed: make([]float64, l.maxGPUs+1), Batch: make([]int32, l.maxGPUs+1)}
	seen := p.packed(l.perNode)
	for gpus := 1; gpus <= l.maxGPUs; gpus++ {
		perGPU := ceilDiv(samples, gpus)
		if m, ok := seen[gpus]; ok {
			c.Speed[gpus], c.Batch[gpus] = m.rate, m.batch
		} else if key.batch.PerGPU == 0 || perGPU <= int(key.batch.PerGPU) {
			c.Speed[gpus], c.Batch[gpus] = float64(samples)/p.model.Update(gpus, ceilDiv(gpus, l.perNode), perGPU, 1), nominal.batch
		}
	}
	if slices.Max(c.Batch) == 0 {
		c.Batch = nil
	}
	return c
}

// usualBatch returns the batch size with most reports, the smaller of two; 0 without any.
func (p *pool) usualBatch() (usual int32) {
	reports := make(map[int32]int64)
	for at, r := range p.cells {
		reports[at.batch] += r.n
	}
	for _, batch := range slices.Sorted(maps.Keys(reports)) {
		if batch > 0 && (usual == 0 || reports[batch] > reports[usual]) {
			usual = batch
		}
	}
	return usual
}

// unknownBatch is how many samples for each GPU asked a job is taken to train with where nobody has said.
const unknownBatch = 64

// samples returns the samples of an update in a cell.
func (c cell) samples(nominal cell) int {
	switch {
	case c.batch > 0:
		return int(c.batch)
	case nominal.batch > 0:
		return int(nominal.batch)
	}
	return unknownBatch * int(nominal.gpus)
}

// timings returns what was measured, in order, and that the nominal rate is 1 if nothing was measured there.
func (p *pool) timings(nominal cell) []Timing {
	rates := map[cell]float64{nominal: 1}
	for at, r := range p.cells {
		rates[at] = r.told
	}
	var list []Timing
	for _, at := range slices.SortedFunc(maps.Keys(rates), cell.compare) {
		samples := at.samples(nominal)
		list = append(list, Timing{GPUs: int(at.gpus), Nodes: int(at.nodes), PerGPU: ceilDiv(samples, int(at.gpus)), Step: float64(samples) / rates[at]})
	}
	return list
}

type measured struct {
	rate  float64
	batch int32
}

// packed returns the best rate of each width measured on as few nodes as hold it; ties go to the smaller batch size.
func (p *pool) packed(perNode int) map[int]measured {
	best := make(map[int]measured)
	for at, r := range p.cells {
		gpus := int(at.gpus)
		if int(at.nodes) != ceilDiv(gpus, perNode) {
			continue
		}
		if b, ok := best[gpus]; !ok || r.told > b.rate || r.told == b.rate && at.batch < b.batch {
			best[gpus] = measured{r.told, at.batch}
		}
	}
	return best
}
