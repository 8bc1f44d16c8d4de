package allocate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Explainer = (*Divide)(nil)
	_ sched.Explainer = (*Autoscale)(nil)
	_ sched.Explainer = ByClass{}
)

// reporter is a Rule that can say what it weighs.
type reporter interface {
	// report says the figures of claims[i], gpus being divided among claims.
	report(v *sched.View, claims []Claim, i, gpus int, say func(sched.Fact))
}

// Explain says the width and the batch size of job j, its scaling factors by width, and what the rule weighs, as of the
// last division. Of a job that took no part it says what it needs at least, and what there was.
func (a *Divide) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	job := &v.Jobs[j]
	if job.State == sched.Done {
		return
	}
	if n := len(job.Target); n > 0 {
		say(sched.Fact{Name: "width", Value: float64(n), Unit: "GPUs"})
	}
	if len(job.Target) > 0 && job.Batch > 0 {
		say(sched.Fact{Name: "batch", Value: float64(job.Batch), Unit: "samples"})
	}
	if least, known := a.Least(v, j); !known {
		say(sched.Fact{Name: "other-widths", Text: fmt.Sprintf("not measured, so it is given %d or none", least)})
	}
	for t, claims := range a.claims {
		if i := slices.IndexFunc(claims, func(c Claim) bool { return c.ID == j }); i >= 0 {
			claims[i].report(say)
			if r, ok := a.Rule.(reporter); ok {
				r.report(v, claims, i, a.divided(t), say)
			}
			return
		}
	}
	a.reportLeftOut(v, j, say)
}

// divided returns the GPUs of type t that were divided last: those beyond the fewest of all that took part, and these.
func (a *Divide) divided(t int) int {
	gpus := a.free[t]
	for i := range a.claims[t] {
		least, _ := a.claims[t][i].Least()
		gpus += least
	}
	return gpus
}

// reportLeftOut says why job j took no part in the last division.
func (a *Divide) reportLeftOut(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	c := a.Rates.claim(v, j)
	c.report(say)
	if least, ok := c.Least(); ok {
		say(sched.Fact{Name: "fewest", Value: float64(least), Unit: "GPUs"})
	}
	if t := a.roomiest(v.Jobs[j].Spec.Types); t >= 0 {
		say(sched.Fact{Name: "left-beyond-fewest-of-others", Value: float64(a.free[t]), Unit: "GPUs"})
	}
}

// report says the factors of a claim at the widths that are possible.
func (c *Claim) report(say func(sched.Fact)) {
	var list []string
	for k := c.Min; k <= min(c.Max, len(c.S)-1); k++ {
		if c.S[k] > 0 {
			list = append(list, fmt.Sprintf("%d:%.4g", k, c.S[k]))
		}
	}
	say(sched.Fact{Name: "scaling-factors", Text: strings.Join(list, " ")})
}

// mostCells bounds the table that is filled for one question: it takes 8 MiB, and some tens of milliseconds.
const mostCells = 1 << 20

// report says what another width or batch size counts for, then P(J, K), the sum as it counts, and what one GPU more
// and one less would make of it: +Inf where someone would have to leave. Then what each GPU is worth that there might
// be, P(J, K) - P(J, K-1), from the first beyond the fewest of all up to twice those there are, where that is no table
// too large.
func (s *Sum) report(_ *sched.View, claims []Claim, i, gpus int, say func(sched.Fact)) {
	c := &claims[i]
	if c.Move != 1 {
		say(sched.Fact{Name: "other-widths-count", Value: c.Move})
	}
	if c.Held > 0 && c.Held < len(c.S) && c.Stay != c.S[c.Held] {
		say(sched.Fact{Name: "factor-if-unchanged", Value: c.Stay})
	}
	most := min(max(2*gpus, gpus+1), elastic.MaxGPUs)
	s.jobs, s.arena = s.jobs[:0], s.arena[:0]
	least := 0
	for i := range claims {
		s.jobs = append(s.jobs, s.row(&claims[i], most))
		k, _ := s.jobs[i].Least()
		least += k
	}
	now, ok := s.solver.Solve(s.jobs, gpus)
	if !ok {
		say(sched.Fact{Name: "short-of-fewest", Value: float64(least - gpus), Unit: "GPUs"})
		return
	}
	more, _ := s.solver.Solve(s.jobs, min(gpus+1, most))
	less := elastic.Answer{Sum: math.Inf(-1)}
	if gpus > least {
		less, _ = s.solver.Solve(s.jobs, gpus-1)
	}
	say(sched.Fact{Name: "sum-of-factors", Value: now.Sum})
	say(sched.Fact{Name: "one-gpu-more-adds", Value: more.Sum - now.Sum})
	say(sched.Fact{Name: "one-gpu-less-takes", Value: now.Sum - less.Sum})
	if (len(s.jobs)+1)*(most+1) <= mostCells {
		say(sched.Fact{Name: "worth-of-gpus", Text: worths(s.jobs, least, most)})
	}
}

// worths returns what each GPU is worth from the first beyond the fewest of all on: "3:0.9 4-6:0.8 7-9:0".
func worths(jobs []elastic.Job, least, most int) string {
	var t elastic.Table
	t.Fill(jobs, most)
	var list []string
	for from := least + 1; from <= most; {
		worth, to := worthOf(&t, len(jobs), from), from
		for to < most && worthOf(&t, len(jobs), to+1) == worth {
			to++
		}
		if to == from {
			list = append(list, fmt.Sprintf("%d:%s", from, worth))
		} else {
			list = append(list, fmt.Sprintf("%d-%d:%s", from, to, worth))
		}
		from = to + 1
	}
	return strings.Join(list, " ")
}

// worthOf prints what GPU k is worth.
func worthOf(t *elastic.Table, jobs, k int) string {
	p, _ := t.At(jobs, k)
	before, _ := t.At(jobs, k-1)
	return fmt.Sprintf("%.3g", p-before)
}

// report says how long the job takes to its end, and the relative gain of its next GPU, seen from before it and from
// after.
func (AFSL) report(v *sched.View, claims []Claim, i, _ int, say func(sched.Fact)) {
	c, left, width := &claims[i], leftOf(claims)[i], len(v.Jobs[claims[i].ID].Target)
	sayEnd(c, left, width, say)
	if now, later := elastic.Gains(&c.Job, width); later > 0 {
		say(sched.Fact{Name: "gain-by-a-gpu-now", Value: now})
		say(sched.Fact{Name: "gain-by-a-gpu-later", Value: later})
	}
}

// report says how long the job takes to its end, and what each GPU of its next step takes off that.
func (Optimus) report(v *sched.View, claims []Claim, i, _ int, say func(sched.Fact)) {
	c, left, width := &claims[i], leftOf(claims)[i], len(v.Jobs[claims[i].ID].Target)
	sayEnd(c, left, width, say)
	say(sched.Fact{Name: "saved-by-a-gpu", Value: elastic.Saving(&c.Job, left, width), Unit: "s"})
}

// sayEnd says when a job of a width, if it has one, is done.
func sayEnd(c *Claim, left float64, width int, say func(sched.Fact)) {
	if width > 0 && width < len(c.S) && c.S[width] > 0 {
		say(sched.Fact{Name: "ends-in", Value: left / c.S[width], Unit: "s"})
	}
}

// report says the fair share, the speedup over it, what another width counts for, and the widest that the job may
// become.
func (p *Pollux) report(v *sched.View, claims []Claim, i, gpus int, say func(sched.Fact)) {
	c, fair := &claims[i], fairShare(gpus, len(claims))
	say(sched.Fact{Name: "fair-share", Value: float64(fair), Unit: "GPUs"})
	if width := len(v.Jobs[c.ID].Target); width > 0 && width < len(c.S) {
		say(sched.Fact{Name: "speedup-over-fair-share", Value: c.S[width] / c.at(fair)})
	}
	say(sched.Fact{Name: "other-widths-count", Value: p.restartFactor(v, c)})
	say(sched.Fact{Name: "widest-now", Value: float64(p.widest(c, gpus)), Unit: "GPUs"})
}

// Explain gives the nodes worth having, the utility at the last decision since that changed and the one requested, and
// what Divide does.
func (a *Autoscale) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	a.Divide.Explain(v, j, say)
	say(sched.Fact{Name: "nodes-worth-having", Value: float64(a.nodes), Unit: "nodes"})
	if n := len(a.seen); n > 0 {
		say(sched.Fact{Name: "utility", Value: a.seen[n-1]})
	}
	say(sched.Fact{Name: "utility-wished", Value: a.Utility})
}

// Explain says what the other rule does.
func (b ByClass) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	if e, ok := b.Grants.(sched.Explainer); ok {
		e.Explain(v, j, say)
	}
}
