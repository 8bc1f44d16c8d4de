package past

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// paces is a sink that notes how fast each job was by the GPUs that it had and the jobs that it shared them with. What
// a job did between two reports is compared with how it ran meanwhile, so that a job is its own measure: its work is
// in units of its own.
type paces struct {
	on   [][]sched.JobID // by GPU: whose attempts are up there
	jobs map[sched.JobID]*paced
}

var _ eventlog.Sink = (*paces)(nil)

// way is how a job ran: on so many GPUs, next to jobs of such kinds, "" = alone.
type way struct {
	width   int
	company string // kinds, sorted, each behind a separator
}

const kindSeparator = "\x00"

// stretch is time spent in a way.
type stretch struct {
	way  way
	time time.Duration
}

// observed is work that was reported of time in some ways.
type observed struct {
	in          []stretch
	work, steps float64 // work in seconds
	epochs      int     // that was between the ends of so many; 0 = between reports
}

// paced is what was seen of a job.
type paced struct {
	kind    string
	unit    int  // GPUs in time on which its work is
	fixed   bool // its batch size is decided for it: how fast it is does not follow from its GPUs alone
	up      bool
	way     way        // of its attempt
	since   sched.Time // counted up to here
	starts  int
	spent   []stretch // up to the last report or end
	attempt []stretch // of the latest attempt
	open    []stretch // since the last report
	seen    []observed
	says    bool      // it has reported work in this attempt
	epochs  int       // in all, as it said; 0 = unknown
	total   float64   // its work in seconds, if it finished
	ended   int       // epochs that ended, 0 = unknown since the attempt started
	within  []stretch // since then
	work    time.Duration
	steps   float64 // with work as last reported; 0 = none
}

// kindOf names the jobs that are as fast as one: those of its model, or its class.
func kindOf(s *sched.JobSpec) string { return cmp.Or(s.Model, s.Class, "?") }

// Log notes who runs where, and what is reported.
func (p *paces) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.AttemptStarted:
		p.start(v, e)
	case sched.Progressed:
		if j := p.jobs[e.Job]; j != nil && j.up {
			j.pass(e.Happened())
			j.report(e)
			j.settle()
		}
	case sched.EpochEnded:
		if j := p.jobs[e.Job]; j != nil && j.up {
			j.pass(e.Happened())
			j.epoch(int(e.Value))
		}
	case sched.AttemptEnded:
		p.end(v, e)
	}
}

func (p *paces) start(v *sched.View, e *sched.Event) {
	if p.jobs == nil {
		p.jobs = make(map[sched.JobID]*paced)
	}
	j, job := p.jobs[e.Job], v.Job(e.Job)
	if j == nil {
		s := job.Spec
		j = &paced{kind: kindOf(s), unit: int(max(job.Unit(), 1)), fixed: s.Batch.Max > 0,
			epochs: int(s.Epochs)}
		p.jobs[e.Job] = j
	}
	p.away(e.Job)
	j.up, j.says, j.since, j.way.width = true, false, e.Happened(), len(job.GPUs)
	j.attempt, j.open, j.ended = nil, nil, 0
	j.starts++
	for _, g := range job.GPUs {
		for int(g) >= len(p.on) {
			p.on = append(p.on, nil)
		}
		p.on[g] = append(p.on[g], e.Job)
	}
	p.meet(v, job.GPUs, e.Happened())
}

func (p *paces) end(v *sched.View, e *sched.Event) {
	j := p.jobs[e.Job]
	if j == nil || !j.up {
		return
	}
	j.pass(e.Happened())
	j.settle()
	if j.up = false; e.Outcome == sched.Finished {
		j.total = e.Work.Seconds()
	}
	gpus := p.away(e.Job)
	p.meet(v, gpus, e.Happened())
}

// away takes a job from its GPUs, and returns those.
func (p *paces) away(id sched.JobID) (gpus []sched.GPUID) {
	for g, list := range p.on {
		if i := slices.Index(list, id); i >= 0 {
			p.on[g] = slices.Delete(list, i, i+1)
			gpus = append(gpus, sched.GPUID(g))
		}
	}
	return gpus
}

// meet gives all that are on some GPUs the company that they have from a time on.
func (p *paces) meet(v *sched.View, gpus []sched.GPUID, at sched.Time) {
	for _, g := range gpus {
		for _, id := range p.on[g] {
			j := p.jobs[id]
			j.pass(at)
			j.way.company = p.company(v.Job(id).GPUs, id)
		}
	}
}

// company returns the kinds of the jobs next to job id on that of its GPUs which has most. A job counts from the start
// of its attempt on, as in simulations.
func (p *paces) company(gpus []sched.GPUID, id sched.JobID) string {
	most := []sched.JobID(nil)
	for _, g := range gpus {
		if int(g) < len(p.on) && len(p.on[g]) > len(most) {
			most = p.on[g]
		}
	}
	var kinds []string
	for _, other := range most {
		if other != id {
			kinds = append(kinds, p.jobs[other].kind)
		}
	}
	return companyOf(kinds)
}

// companyOf returns what names jobs of such kinds, which it sorts.
func companyOf(kinds []string) string {
	slices.Sort(kinds)
	var b strings.Builder
	for _, k := range kinds {
		b.WriteString(kindSeparator + k)
	}
	return b.String()
}

// kindsOf returns the kinds that a company has.
func kindsOf(company string) []string {
	if company == "" {
		return nil
	}
	return strings.Split(company[len(kindSeparator):], kindSeparator)
}

// pass counts the time up to now.
func (j *paced) pass(now sched.Time) {
	if took := now.Sub(j.since); took > 0 {
		j.attempt, j.open = spend(j.attempt, j.way, took), spend(j.open, j.way, took)
		j.within = spend(j.within, j.way, took)
		j.since = now
	}
}

// settle counts what has passed since the last report.
func (j *paced) settle() {
	for _, x := range j.open {
		j.spent = spend(j.spent, x.way, x.time)
	}
	j.open = nil
}

// spend adds time in a way to list.
func spend(list []stretch, in way, took time.Duration) []stretch {
	for i := range list {
		if list[i].way == in {
			list[i].time += took
			return list
		}
	}
	return append(list, stretch{in, took})
}

// report takes what a job did since its last report. What it did before the first of an attempt no one knows, nor
// what is done again.
func (j *paced) report(e *sched.Event) {
	work, steps := (e.Work - j.work).Seconds(), e.Value-j.steps
	if j.says && work > 0 && (steps > 0 || e.Value == 0) && len(j.open) > 0 {
		j.note(observed{in: slices.Clone(j.open), work: work, steps: steps})
	}
	j.says, j.work, j.steps = e.Work > 0, e.Work, e.Value
}

// epoch takes that an epoch ended.
func (j *paced) epoch(n int) {
	if j.ended > 0 && n == j.ended+1 && len(j.within) > 0 {
		j.note(observed{in: j.within, epochs: 1})
	}
	j.ended, j.within = n, nil
}

// note keeps an observation, summed up with those before of time in the same way.
func (j *paced) note(o observed) {
	if len(o.in) == 1 {
		for i := range j.seen {
			if s := &j.seen[i]; len(s.in) == 1 && s.in[0].way == o.in[0].way && (s.epochs > 0) == (o.epochs > 0) {
				s.epochs += o.epochs
				s.in[0].time += o.in[0].time
				s.work += o.work
				s.steps += o.steps
				return
			}
		}
	}
	j.seen = append(j.seen, o)
}

// plain reports whether a job ran alone all the time, on as many GPUs as its work counts.
func (j *paced) plain() bool {
	return !slices.ContainsFunc(j.spent, func(x stretch) bool { return x.way != way{width: j.unit} })
}

// oneWidth reports whether a job had as many GPUs all the time.
func (j *paced) oneWidth() bool {
	return !slices.ContainsFunc(j.spent, func(x stretch) bool { return x.way.width != j.spent[0].way.width })
}

// generic is how much a company slows a job of which nothing is known.
func generic(company string) float64 { return interference.Generic(1 + len(kindsOf(company))) }
