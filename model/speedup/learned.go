package speedup

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Learned is a Source that knows nothing but the events it has seen. It pools what jobs of equal application
// (JobSpec.Model), asked width and batch range report: rates of work by GPUs, nodes and batch size they ran on, and the
// work of those that finished. Jobs of different asked width count work in different units, and are not pooled.
//
// Speeds are reported by stages of work, for how well a job scales changes as it trains: a chain has a phase for each
// stage up to the mean work of the jobs that finished; as long as none has, up to AssumedSeconds. Its unit of progress
// is a second of work. What a job says counts for as long as it holds: a mean is over time.
//
// A width that was measured packed in a stage has its measured rate. Others follow from a fit of Overlap to all that
// was measured, made whenever a job runs in a new way or there are twice as many reports as at the last, and on what
// work means: on the GPUs asked for, packed, a job has rate 1. In each stage the fit is corrected by what it is off at
// the measured widths nearest by. What was not observed is taken to cost nothing, so that little data makes a hopeful
// curve: its end is to be tried, not trusted. Batch sizes below or above are not weighed against each other by what
// they are worth: a rate is work, in which lost efficiency is lost time. A width on which the usual batch size does not
// fit (BatchRange.PerGPU) is not possible unless it was seen.
//
// Jobs without an application are unknown. Slow GPUs and neighbours on shared GPUs count as if they belonged to the
// width.
type Learned struct {
	sched.ByName

	perNode, maxGPUs int
	pools            map[poolKey]*pool
	blank            map[poolKey]Chain // of pools of which nothing is known: they follow from the key
	open             []spell           // by JobID: what a job last reported, and holds
}

var (
	_ Source         = (*Learned)(nil)
	_ sched.Observer = (*Learned)(nil)
	_ sched.Memory   = (*Learned)(nil)
)

// How rates are learned. All are ours.
const (
	AssumedSeconds = 3600 // work of a job before one of its kind has finished
	// second for which a report counts at once: a new way to run is known as soon as it is reported
	token      = 1
	remembered = 20   // times a stage, as work in a cell, after which old reports fade
	notable    = 0.05 // a mean that has moved by less than this share is reported as before
	maxPools   = 4096 // kinds of jobs of which something is learned: nothing is of further ones
	maxCells   = 4096 // of a pool: further ones are not learned
	minRate    = 1e-9 // smaller rates are not learned, nor those above maxRate
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
	usual    int32   // batch size that had run longest by then, see usualBatch: one of cells, or 0
	model    Overlap // of what was not measured, at that batch size
	cells    map[cell]rates
	chain    Chain  // follows from model, cells and the finished; nil = to be made
	made     []made // by stage: what it was last made of
}

// cell is a way to have run. Batch 0: the job chooses it.
type cell struct{ gpus, nodes, batch int32 }

func (c cell) compare(d cell) int {
	return cmp.Or(cmp.Compare(c.gpus, d.gpus), cmp.Compare(c.nodes, d.nodes), cmp.Compare(c.batch, d.batch))
}

// rates are what was seen of a cell, by stage.
type rates []rate

// rate is work done over the time that it took.
type rate struct {
	work, seconds float64
	reported      float64 // work over seconds as of the last notable change; 0 = nothing was seen
}

// spell is a rate that a job reported, at the work that it had done.
type spell struct {
	at   cell // gpus 0 = none
	rate float64
	from float64 // seconds of work
}

// NewLearned returns a Learned that has seen nothing, for a cluster of nodes with gpusPerNode GPUs. Its chains have
// widths up to maxGPUs.
func NewLearned(gpusPerNode, maxGPUs int) *Learned {
	return &Learned{perNode: gpusPerNode, maxGPUs: maxGPUs, pools: make(map[poolKey]*pool),
		blank: make(map[poolKey]Chain)}
}

// Observe takes in a rate that a job reports, or that a job has finished.
func (l *Learned) Observe(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted, sched.Progressed:
		l.close(v, e)
		l.reported(v, e)
	case sched.AttemptEnded:
		l.close(v, e)
		job := &v.Jobs[e.Job]
		if e.Outcome != sched.Finished || job.Spec.Model == "" || e.Work <= 0 {
			return
		}
		p := l.pool(keyOf(job))
		p.finished++
		p.work += (e.Work.Seconds() - p.work) / float64(p.finished)
		p.chain = nil
	}
}

// close counts what a job has done since it last reported its rate.
func (l *Learned) close(v *sched.View, e *sched.Event) {
	if int(e.Job) >= len(l.open) || l.open[e.Job].at.gpus == 0 {
		return
	}
	s := l.open[e.Job]
	l.open[e.Job] = spell{}
	key := keyOf(&v.Jobs[e.Job])
	p := l.pools[key]
	if p == nil || p.cells[s.at] == nil {
		return
	}
	for stage, from, to := stageOf(s.from), s.from, min(e.Work.Seconds(), MaxDuration.Seconds()); from < to; stage++ {
		end := min(to, stageEnd(stage))
		p.add(s.at, stage, end-from, (end-from)/s.rate)
		from = end
	}
}

func (l *Learned) reported(v *sched.View, e *sched.Event) {
	job := &v.Jobs[e.Job]
	if job.Spec.Model == "" || len(job.GPUs) == 0 || !e.ReportsRate() || !(e.Rate >= minRate && e.Rate <= maxRate) {
		return
	}
	key := keyOf(job)
	p := l.pool(key)
	at := cell{int32(len(job.GPUs)), nodesOf(v, job.GPUs), job.Live.Batch}
	first := p.cells[at] == nil
	if first && len(p.cells) == maxCells {
		return
	}
	for int(e.Job) >= len(l.open) {
		l.open = append(l.open, spell{})
	}
	s := spell{at, e.Rate, min(max(e.Work, 0), MaxDuration).Seconds()}
	l.open[e.Job] = s
	p.add(at, stageOf(s.from), token*e.Rate, token)
	if p.reports++; first || p.reports >= 2*p.fitted {
		l.fit(key, p)
	}
}

// add counts work done in a stage.
func (p *pool) add(at cell, stage int, work, seconds float64) {
	list := p.cells[at]
	for stage >= len(list) {
		list = append(list, rate{})
	}
	p.cells[at] = list
	r := &list[stage]
	r.work, r.seconds = r.work+work, r.seconds+seconds
	if most := remembered * (stageEnd(stage) - stageStart(stage)); r.work > most {
		r.work, r.seconds = most, r.seconds*most/r.work
	}
	if mean := r.work / r.seconds; math.Abs(mean-r.reported) > notable*r.reported {
		r.reported, p.chain = mean, nil
	}
}

// Stages of training: the first ends after so much work, each one after it at so many times the work of the one before.
// Ours: fine at the start, where gradients change most, and as many for a long job as to know it.
const (
	firstStage  = 300 // seconds of work
	stageGrowth = 1.5
)

// stageEnds are the seconds of work at which stages end, up to MaxDuration.
var stageEnds = func() (ends []float64) {
	for end := float64(firstStage); ; end *= stageGrowth {
		if ends = append(ends, end); end > MaxDuration.Seconds() {
			return ends
		}
	}
}()

func stageEnd(stage int) float64 { return stageEnds[stage] }

func stageStart(stage int) float64 {
	if stage == 0 {
		return 0
	}
	return stageEnds[stage-1]
}

// stageOf returns the stage in which so many seconds of work have been done. At its end the next has started.
func stageOf(work float64) int {
	i, exact := slices.BinarySearch(stageEnds, work)
	if exact {
		i++
	}
	return i
}

// fit has the model of p follow from what was measured, and the usual batch size with it: were that looked up when a
// curve is asked for, it would depend on when someone asks.
func (l *Learned) fit(key poolKey, p *pool) {
	p.usual = p.usualBatch()
	timings := p.timings(l.nominal(key, p))
	if p.fitted == 0 {
		p.model = FitOverlap(timings)
	} else {
		p.model = p.model.refit(timings)
	}
	p.fitted, p.chain = p.reports, nil
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

// keyOf says where what job j reports belongs: its work keeps its unit although its user wants another width since.
func keyOf(j *sched.Job) poolKey { return poolKey{j.Spec.Model, j.Unit(), j.Spec.Batch} }

// pool returns what is known of jobs of a kind; what is reported of more kinds than are kept goes into one that is
// forgotten.
func (l *Learned) pool(key poolKey) *pool {
	p := l.pools[key]
	if p == nil {
		p = &pool{cells: make(map[cell]rates)}
		if len(l.pools) < maxPools {
			l.pools[key] = p
		}
	}
	return p
}

// Chain returns what is known of job j, nil if it names no application. Phase and share done are those of the mean job
// of its kind.
func (l *Learned) Chain(v *sched.View, j sched.JobID) (c Chain, phase int, done float64) {
	job := &v.Jobs[j]
	if job.Spec.Model == "" {
		return nil, 0, 0
	}
	c = l.chain(keyOf(job))
	work := job.WorkNow(v.Now).Seconds()
	phase = min(stageOf(max(work, 0)), len(c)-1)
	return c, phase, min(max(0, work-stageStart(phase))/c[phase].Size, 1)
}

// chain returns the chain of a pool. Asking for one of which nothing is known leaves no trace.
func (l *Learned) chain(key poolKey) Chain {
	p := l.pools[key]
	if p == nil {
		return l.chainOfNothing(key)
	}
	if p.chain == nil {
		p.chain = l.stages(key, p)
	}
	return p.chain
}

func (l *Learned) chainOfNothing(key poolKey) Chain {
	if l.blank[key] == nil {
		if len(l.blank) >= maxPools {
			clear(l.blank)
		}
		l.blank[key] = l.stages(key, &pool{})
	}
	return l.blank[key]
}

func (p *pool) size() float64 {
	if p.finished == 0 {
		return AssumedSeconds
	}
	return p.work
}
