package server

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// priceID is the operation that takes a system that puts a price on GPUs.
const priceID = "price"

// priced answers about prices.
type priced struct{ s *Server }

// price returns what a GPU of each type is worth, and what jobs bid.
func (p priced) price(ctx context.Context, _ *nothing) (api.Price, error) {
	s := p.s
	doc := api.Price{Schema: "trainyard.price/v1", System: s.o.Host.Header().System, Prices: []api.TypePrice{},
		Bids: []api.Bid{}}
	err := s.o.Host.Look(ctx, func(v *sched.View) {
		if by := s.o.Host.Pricer(); by != nil {
			doc.Prices = prices(v, by)
			by.Bids(v, sched.None, func(id sched.JobID, b sched.Bid) {
				doc.Bids = append(doc.Bids, *bidDoc(id, &b))
			})
		}
		doc.Now = s.writer(v).when(v.Now)
	})
	slices.SortFunc(doc.Bids, func(a, b api.Bid) int { return a.Job - b.Job })
	return doc, err
}

// prices lists the prices of the types of GPU.
func prices(v *sched.View, p sched.Pricer) (list []api.TypePrice) {
	list = []api.TypePrice{}
	p.Prices(func(t sched.TypeID, price float64) {
		x := api.TypePrice{Price: min(price, largest)}
		if int(t) < len(v.Types) {
			x.Type = v.Types[t]
		}
		for i := range v.Nodes {
			if v.Nodes[i].Spec.Type == t {
				x.GPUs += v.Nodes[i].Spec.GPUs
			}
		}
		list = append(list, x)
	})
	return list
}

func bidDoc(id sched.JobID, b *sched.Bid) *api.Bid {
	return &api.Bid{Job: int(id), Price: min(b.Price, largest), Held: b.Held, Holds: min(b.Holds, largest),
		Wants: b.Wants, Worth: min(b.Worth, largest), LeftSec: min(b.Left, largest), Kept: b.Kept}
}

// worths adds what GPUs are worth to jobs, by their number.
func worths(h Host, v *sched.View, docs []api.Job) {
	p := h.Pricer()
	if p == nil {
		return
	}
	at := make(map[sched.JobID]int, len(docs))
	for i := range docs {
		at[sched.JobID(docs[i].ID)] = i
	}
	p.Bids(v, sched.None, func(id sched.JobID, b sched.Bid) {
		if i, listed := at[id]; listed {
			worth := b.Worth
			if b.Held > 0 {
				worth = b.Holds
			}
			docs[i].Worth = min(worth, largest)
		}
	})
}

// bidOf says what the job bids, as of the moment of the answer; nil where that is not known.
func bidOf(ctx context.Context, s *Server, id sched.JobID) (doc *api.Bid, err error) {
	err = s.o.Host.Look(ctx, func(v *sched.View) {
		if by := s.o.Host.Pricer(); by != nil {
			by.Bids(v, id, func(_ sched.JobID, b sched.Bid) {
				doc = bidDoc(id, &b)
				doc.Text = bidText(doc, b.Assumed, s.o.Site.Unit())
			})
		}
	})
	return doc, err
}

// bidText says a bid in words, unit being what jobs hold; assumed: how much is left is a guess.
func bidText(b *api.Bid, assumed bool, unit string) string {
	said := fmt.Sprintf("A %s is worth %s now: an hour of one saves others %s hours of waiting.", unit,
		worthText(b.Price), worthText(b.Price))
	if b.Price == 0 {
		said = fmt.Sprintf("A %s is worth nothing now: no job that could use one lacks it.", unit)
	}
	left := fmt.Sprintf(" (%s left)", hoursText(b.LeftSec))
	if assumed {
		left = fmt.Sprintf(" (%s left, which is assumed: nothing is known yet of such jobs)", hoursText(b.LeftSec))
	}
	switch {
	case b.Held > 0 && b.Wants > b.Held:
		return said + fmt.Sprintf(" It has %d, each worth %s to it%s; each of %d more would be worth %s.", b.Held,
			worthText(b.Holds), left, b.Wants-b.Held, worthText(b.Worth))
	case b.Held > 0:
		return said + fmt.Sprintf(" It has %d, each worth %s to it%s, and no use for more.", b.Held,
			worthText(b.Holds), left)
	case b.Kept:
		return said + fmt.Sprintf(" It asks for %d, each worth %s to it%s; as it has waited long, what becomes free "+
			"is kept for it.", b.Wants, worthText(b.Worth), left)
	case b.Wants > 0 && b.Worth > b.Price:
		return said + fmt.Sprintf(" It asks for %d, each worth %s to it%s: it pays the price, and starts when so many "+
			"come free or a job can be stopped for less than that gains.", b.Wants, worthText(b.Worth), left)
	case b.Wants > 0 && b.Worth == b.Price:
		return said + fmt.Sprintf(" It asks for %d, each worth as much to it%s: those that have them came first, and "+
			"it starts when so many come free.", b.Wants, left)
	case b.Wants > 0:
		return said + fmt.Sprintf(" It asks for %d, each worth %s to it%s: it starts when the price falls to that.",
			b.Wants, worthText(b.Worth), left)
	}
	return said
}

// worthText says what a GPU is worth.
func worthText(x float64) string {
	switch {
	case x >= largest:
		return "any price"
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2g", x)
}

// hoursText says about how much work there is left.
func hoursText(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("about %.0f s", math.Ceil(seconds))
	case seconds < 100*60:
		return fmt.Sprintf("about %.0f min", seconds/60)
	}
	return fmt.Sprintf("about %.0f h", seconds/3600)
}
