package simulate

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// Prices notes what a GPU was worth over time under a system that puts a price on GPUs. It is a sink; the zero value is
// ready. A price holds from the first event of an instant to that of the next.
type Prices struct {
	by     sched.Pricer
	begun  bool
	from   sched.Time
	to     sched.Time
	priced [][]priceSpan // by type of GPU, in order of time
}

// priceSpan is a time of one price.
type priceSpan struct {
	until sched.Time
	price float64
}

// MostPrice is the largest price that is noted: a second of a GPU saves no more than so many seconds of waiting.
const MostPrice = 1e6

// Log notes the prices up to now.
func (p *Prices) Log(v *sched.View, _ *sched.Event) {
	switch {
	case p.by == nil:
		return
	case !p.begun:
		p.begun, p.from, p.to = true, v.Now, v.Now
		return
	case v.Now <= p.to:
		return
	}
	p.by.Prices(func(t sched.TypeID, price float64) {
		for len(p.priced) <= int(t) { // before it had a price it was worth nothing
			p.priced = append(p.priced, []priceSpan{{until: p.to}})
		}
		of := &p.priced[t]
		if last := len(*of) - 1; (*of)[last].price == min(price, MostPrice) {
			(*of)[last].until = v.Now
			return
		}
		*of = append(*of, priceSpan{v.Now, min(price, MostPrice)})
	})
	p.to = v.Now
}

// PriceLine is what a GPU of a type was worth: so many seconds that jobs wait would have been saved by each second of
// one more.
type PriceLine struct {
	Type   string    `json:"type"`
	Mean   float64   `json:"mean"`   // over time
	Median float64   `json:"median"` // likewise
	Parts  []float64 `json:"parts"`  // means over equal parts of the time, in order
}

// Lines sums up what was noted in so many equal parts of the time; nothing where the system puts no price on GPUs.
func (p *Prices) Lines(types []string, parts int) (lines []PriceLine) {
	if p.to <= p.from {
		return nil
	}
	for t, spans := range p.priced {
		line := PriceLine{Parts: make([]float64, parts)}
		if t < len(types) {
			line.Type = types[t]
		}
		p.sum(&line, spans)
		line.Median = median(spans, p.from)
		lines = append(lines, line)
	}
	return lines
}

// sum fills in the means of a line.
func (p *Prices) sum(line *PriceLine, spans []priceSpan) {
	all, from := float64(p.to-p.from), p.from
	part := all / float64(len(line.Parts))
	for _, s := range spans {
		a, b := float64(from-p.from), float64(s.until-p.from)
		line.Mean += float64(s.price * ((b - a) / all))
		for i := int(a / part); i < len(line.Parts) && float64(float64(i)*part) < b; i++ {
			within := min(b, float64(float64(i+1)*part)) - max(a, float64(float64(i)*part))
			line.Parts[i] += float64(s.price * max(within/part, 0))
		}
		from = s.until
	}
}

// median returns the price that was not exceeded in half of the time.
func median(spans []priceSpan, from sched.Time) float64 {
	list := make([]priceSpan, len(spans)) // until: how long
	all := sched.Time(0)
	for i, s := range spans {
		list[i] = priceSpan{s.until - from, s.price}
		all, from = all+list[i].until, s.until
	}
	slices.SortFunc(list, func(a, b priceSpan) int { return cmp.Compare(a.price, b.price) })
	below := sched.Time(0)
	for _, s := range list {
		if below += s.until; 2*below >= all {
			return s.price
		}
	}
	return 0
}
