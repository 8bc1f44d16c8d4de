package power

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Cap is what a GPU does under one power limit.
type Cap struct {
	Limit sched.Watts // > 0
	Power sched.Watts // drawn, > 0; measured power may exceed the limit a little
	Speed float64     // work per time over that at the highest limit, > 0; noise may make it exceed 1
}

// Caps are what one kind of GPU does for one kind of job, by rising limit.
type Caps []Cap

// Validate returns the first thing wrong with c.
func (c Caps) Validate() error {
	if len(c) == 0 {
		return errors.New("no power limits, want at least one")
	}
	for i, x := range c {
		if !(x.Limit > 0 && x.Power > 0 && x.Speed > 0 && x.Limit <= maxWatts && x.Power <= maxWatts &&
			x.Speed <= maxRatio) {
			return fmt.Errorf("limit %v W, power %v W, speed %v, want numbers > 0", x.Limit, x.Power, x.Speed)
		}
		if i > 0 && x.Limit <= c[i-1].Limit {
			return fmt.Errorf("limit %v W after %v W, want rising limits", x.Limit, c[i-1].Limit)
		}
	}
	return nil
}

// At returns what a GPU does under limit, linear between the limits known, and as under the highest above it; 0 W means
// no limit. A limit below the lowest is an error: nothing is known there.
func (c Caps) At(limit sched.Watts) (Cap, error) {
	last := c[len(c)-1]
	switch {
	case limit == 0 || limit >= last.Limit:
		return last, nil
	case !(limit >= c[0].Limit):
		return Cap{}, fmt.Errorf("power: cap %v W, want one from %v to %v W", limit, c[0].Limit, last.Limit)
	}
	i := sort.Search(len(c), func(i int) bool { return c[i].Limit >= limit })
	if c[i].Limit == limit {
		return c[i], nil
	}
	p, q := c[i-1], c[i]
	f := float64((limit - p.Limit) / (q.Limit - p.Limit))
	return Cap{limit, p.Power + sched.Watts(f)*(q.Power-p.Power), p.Speed + f*(q.Speed-p.Speed)}, nil
}

// Factor returns the power under limit over that without one, at most 1; below the lowest limit known that of the
// lowest.
func (c Caps) Factor(limit sched.Watts) float64 {
	if limit > 0 {
		limit = max(limit, c[0].Limit)
	}
	x, _ := c.At(limit) // it is not below the lowest
	return min(float64(x.Power/c[len(c)-1].Power), 1)
}

// Best returns the limit under which a unit of work takes the least energy among those under which it takes at most
// slowdown times as long as under the highest; slowdown is at least 1, +Inf for no limit. Of equals it is the highest.
// The energy is the GPU's own: the rest of the node, which runs longer, is not in it.
func (c Caps) Best(slowdown float64) (Cap, error) {
	if !(slowdown >= 1) {
		return Cap{}, fmt.Errorf("power: slow-down limit %v, want >= 1", slowdown)
	}
	last := c[len(c)-1]
	best := last
	for i := len(c) - 1; i >= 0; i-- {
		if x := c[i]; last.Speed <= slowdown*x.Speed && x.Energy() < best.Energy() {
			best = x
		}
	}
	return best, nil
}

// Energy returns the energy of a unit of work: what takes a second under the highest limit.
func (x Cap) Energy() sched.Joules { return sched.Joules(float64(x.Power) / x.Speed) }

// Bounds of what readers take.
const (
	maxWatts = 1e6
	maxRatio = 1e6
	maxTime  = 1e9
)

// Profile is what was measured of one kind of job.
type Profile struct {
	Dataset, Network string
	Batch            int
	Optimizer        string
	Caps             Caps
}

// sample is one measurement before speeds are known.
type sample struct{ limit, power, time float64 }

// capsOf orders samples by limit and turns times of equal work into speeds.
func capsOf(samples []sample) (Caps, error) {
	sort.SliceStable(samples, func(i, j int) bool { return samples[i].limit < samples[j].limit })
	var c Caps
	for _, s := range samples {
		c = append(c, Cap{sched.Watts(s.limit), sched.Watts(s.power), samples[len(samples)-1].time / s.time})
	}
	return c, c.Validate()
}

// ReadSummary reads what Zeus measured on one GPU type (summary_power_*.csv): a row for each job and power limit, with
// the columns dataset, network, batch_size, optimizer, power_limit (W), time_per_epoch (s) and average_power (W of one
// GPU). Profiles come in order of first mention. Errors call the file by name.
func ReadSummary(r io.Reader, name string) ([]Profile, error) {
	t, err := csvtable.Open(r, "power", name)
	if err != nil {
		return nil, err
	}
	err = t.Only("dataset", "network", "batch_size", "optimizer", "power_limit", "time_per_epoch", "average_power")
	if err != nil {
		return nil, err
	}
	list, err := profiles(t)
	if err == nil && len(list) == 0 {
		err = t.Fail("no rows, want one for each job and power limit")
	}
	return list, err
}

// profiles reads the rows of a summary.
func profiles(t *csvtable.Table) ([]Profile, error) {
	var list []Profile
	var samples [][]sample
	at := make(map[string]int)
	err := t.Each(func() error {
		p, s, err := summaryRow(t)
		if err != nil {
			return err
		}
		key := fmt.Sprint(len(p.Dataset), p.Dataset, len(p.Network), p.Network, p.Batch, p.Optimizer)
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list, samples = append(list, p), append(samples, nil)
		}
		for _, other := range samples[i] {
			if other.limit == s.limit {
				return t.Fail("power_limit %v W of %s again, want each once", s.limit, p)
			}
		}
		samples[i] = append(samples[i], s)
		return nil
	})
	for i := 0; i < len(list) && err == nil; i++ {
		list[i].Caps, err = capsOf(samples[i])
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// String names the job.
func (p Profile) String() string {
	return fmt.Sprintf("%s on %s, batch %d, %s", p.Network, p.Dataset, p.Batch, p.Optimizer)
}

func summaryRow(t *csvtable.Table) (p Profile, s sample, err error) {
	text := func(column string) (v string) {
		if err == nil {
			v, err = t.Text(column)
		}
		return v
	}
	number := func(column string, least, most float64) (v float64) {
		if err == nil {
			v, err = t.Number(column, least, most)
		}
		return v
	}
	p = Profile{Dataset: text("dataset"), Network: text("network"), Optimizer: text("optimizer")}
	batch := number("batch_size", 1, 1e9)
	s = sample{number("power_limit", 1, maxWatts), number("average_power", 1e-3, maxWatts),
		number("time_per_epoch", 1e-6, maxTime)}
	if p.Batch = int(batch); err == nil && float64(p.Batch) != batch {
		err = t.Fail("batch_size %v, want a whole number", batch)
	}
	return p, s, err
}
