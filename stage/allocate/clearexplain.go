package allocate

import (
	"fmt"
	"math"
	"strings"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

var (
	_ sched.Explainer = (*Clear)(nil)
	_ sched.Pricer    = (*Clear)(nil)
)

// surrender says for whom a job last gave up GPUs, and what was weighed, in job-seconds.
type surrender struct {
	to         sched.JobID
	gain, cost float64
}

// Prices says the price of a GPU of each type, as of the last division.
func (a *Clear) Prices(say func(t sched.TypeID, price float64)) {
	for t, price := range a.prices {
		say(sched.TypeID(t), price)
	}
}

// Bids says what the jobs of the last division bid.
func (a *Clear) Bids(v *sched.View, only sched.JobID, say func(sched.JobID, sched.Bid)) {
	var c step.Curve
	for t, list := range a.by {
		for _, i := range list {
			b := &a.bidders[i]
			id := b.claim.ID
			if only != sched.None && only != id || int(id) >= len(v.Jobs) || v.Jobs[id].State == sched.Done {
				continue
			}
			say(id, a.bidOf(v, b, sched.TypeID(t), &c))
		}
	}
}

// bidOf returns what a bidder bids for GPUs of a type after the last division, and makes c its curve.
func (a *Clear) bidOf(v *sched.View, b *bidder, t sched.TypeID, c *step.Curve) sched.Bid {
	of := &v.Jobs[b.claim.ID]
	job := step.Job{Speed: b.speed, Work: b.least, Restart: b.restart, Held: b.width,
		Weight: weightOf(&a.Constants, v.Now, of, a.horizon, b.ends(of))}
	c.Set(&job, a.market())
	bid := sched.Bid{Type: t, Held: b.width, Left: b.ends(of),
		Kept: a.memory[b.claim.ID].kept > 0}
	if s, ok := a.Sizes.(interface {
		Assumed(*sched.View, sched.JobID) bool
	}); ok {
		bid.Assumed = s.Assumed(v, b.claim.ID)
	}
	if int(t) < len(a.prices) {
		bid.Price = a.prices[t]
	}
	if held := c.Steps(nil, 0, b.width); len(held) > 0 {
		bid.Holds = held[len(held)-1].Price
	}
	if next, ok := c.Next(b.width, len(b.speed)); ok {
		bid.Wants, bid.Worth = next.To, next.Price
	}
	return bid
}

// bidderOf returns the bidder of job j, and the type for which it bid; nil if it took no part in the last division.
func (a *Clear) bidderOf(j sched.JobID) (*bidder, sched.TypeID) {
	for t, list := range a.by {
		for _, i := range list {
			if a.bidders[i].claim.ID == j {
				return &a.bidders[i], sched.TypeID(t)
			}
		}
	}
	return nil, 0
}

// Explain says the price of a GPU, what each GPU is worth to job j, what that rests on, and for whom the job last gave
// GPUs up; as of the last division. It says nothing of a job that took no part.
func (a *Clear) Explain(v *sched.View, j sched.JobID, say func(sched.Fact)) {
	b, t := a.bidderOf(j)
	if b == nil || v.Jobs[j].State == sched.Done {
		return
	}
	var c step.Curve
	job := &v.Jobs[j]
	bid := a.bidOf(v, b, t, &c)
	say(sched.Fact{Name: "gpu-price", Value: bid.Price})
	say(sched.Fact{Name: "worth-of-gpus", Text: stepsText(c.Steps(nil, 0, len(b.speed)))})
	say(sched.Fact{Name: "expected-work", Value: bid.Left, Unit: "s"})
	say(sched.Fact{Name: "effective-work", Value: b.least / b.claim.asked(job.Unit()), Unit: "s"})
	if b.restart > 0 {
		say(sched.Fact{Name: "restart", Value: b.restart, Unit: "s"})
	}
	if weight := weightOf(&a.Constants, v.Now, job, a.horizon, b.ends(job)); weight != 1 {
		say(sched.Fact{Name: "weight", Value: weight})
	}
	say(sched.Fact{Name: "horizon", Value: a.horizon, Unit: "s"})
	if m := &a.memory[j]; m.kept > 0 {
		say(sched.Fact{Name: "gpus-kept-for", Value: v.Now.Sub(m.kept).Seconds(), Unit: "s"})
	}
	if s, ok := a.auction.gave[j]; ok {
		say(sched.Fact{Name: "gave-up-gpus-to", Text: fmt.Sprintf("job %d", s.to)})
		say(sched.Fact{Name: "gained-by-that", Value: s.gain, Unit: "job-seconds"})
		say(sched.Fact{Name: "lost-by-that", Value: s.cost, Unit: "job-seconds"})
	}
}

// stepsText says what each GPU of the steps of a width is worth: "1-4:2.1 5-8:0.3".
func stepsText(steps []step.Step) string {
	list := make([]string, len(steps))
	for i, s := range steps {
		gpus, worth := fmt.Sprintf("%d-%d", s.From+1, s.To), fmt.Sprintf("%.3g", s.Price)
		if s.To == s.From+1 {
			gpus = fmt.Sprint(s.To)
		}
		if math.IsInf(s.Price, 1) {
			worth = "any"
		}
		list[i] = gpus + ":" + worth
	}
	return strings.Join(list, " ")
}
