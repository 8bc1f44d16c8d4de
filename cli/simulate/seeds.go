package simulate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/simulate"
)

// mostSeeds is how many seeds a system may be simulated with.
const mostSeeds = 10_000

// checkSeeds refuses what is said of one simulation of a system where there are several.
func (f *simulateFlags) checkSeeds(given bool) error {
	if !given {
		return nil
	}
	if f.seeds < 1 || f.seeds > mostSeeds {
		return term.Usagef("--seeds %d, want a number of seeds from 1 to %d", f.seeds, mostSeeds)
	}
	for _, o := range []term.PathUse{{What: "--jobs-out", Path: f.jobsOut}, {What: "--events-out", Path: f.eventsOut},
		{What: "--report", Path: f.report.Path}} {
		if o.Path != "" {
			return term.Usagef("%s with --seeds: want one simulation of each system; name its seed by --seed", o.What)
		}
	}
	return nil
}

// bySeed has each system simulated n times, with another seed each. One under which nothing is drawn runs once.
func (c *comparison) bySeed(n int) error {
	c.seeds = n
	var runs []systemRun
	for i := range c.runs {
		r := &c.runs[i]
		if r.seed = r.request.NoiseSeed; !r.request.Draws() {
			c.same = append(c.same, r.request.System)
			runs = append(runs, *r)
			continue
		}
		if most := math.MaxUint64 - uint64(n-1); r.seed > most {
			return term.Usagef("--seeds %d from seed %d on, want one of at most %d", n, r.seed, most)
		}
		for k := range n {
			x := *r
			x.request, x.seed = r.request.Seeded(k), r.seed+uint64(k)
			if r.hash != nil {
				x.hash = new(eventlog.Hash)
			}
			runs = append(runs, x)
		}
	}
	c.runs = runs
	return nil
}

// oneOfMany keeps of a run what figures over seeds are made of, and says which one failed.
func (r *systemRun) oneOfMany() {
	if r.err != nil {
		r.err = fmt.Errorf("seed %d: %w", r.seed, r.err)
	} else {
		r.outcome.PerJob = nil
	}
}

// bySystem returns the runs that there are of each system, in the order of systems, then of seeds.
func (c *comparison) bySystem() (groups [][]systemRun) {
	for runs := c.runs; len(runs) > 0; {
		n := 1
		for n < len(runs) && runs[n].request.System == runs[0].request.System {
			n++
		}
		groups, runs = append(groups, runs[:n]), runs[n:]
	}
	return groups
}

// spread is a figure over the seeds: its mean and the 95 % interval of that by Student's t. Of one simulation, where
// others would differ, there is no interval.
type spread struct {
	Mean float64  `json:"mean"`
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// over is the spread of a figure of runs of one system.
func (c *comparison) over(runs []systemRun, figure func(r *systemRun) float64) spread {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = figure(&runs[i])
	}
	return spreadOf(values, slices.Contains(c.same, runs[0].request.System))
}

// spreadOf is the spread of values, which are not empty; same: any further value would be the same.
func spreadOf(values []float64, same bool) spread {
	e := simulate.Students(values)
	if same {
		e.Low, e.High = e.Mean, e.Mean
	}
	s := spread{Mean: e.Mean}
	if !math.IsNaN(e.Low) {
		s.Low, s.High = &e.Low, &e.High
	}
	return s
}

// seedsDoc is what came of a system over all seeds, in the document of --json.
type seedsDoc struct {
	System string `json:"system"`
	First  uint64 `json:"first_seed"`
	Runs   int    `json:"runs"`  // that ran to their end; 1 where nothing is drawn
	Draws  bool   `json:"draws"` // false: nothing is drawn, any seed gives the same simulation

	Finished    spread `json:"finished"`
	AvgJCT      spread `json:"avg_jct_s"`
	P95JCT      spread `json:"p95_jct_s"`
	AvgQueue    spread `json:"avg_queue_s"`
	Makespan    spread `json:"makespan_s"`
	Preemptions spread `json:"preemptions"`
	GPUBusy     spread `json:"gpu_busy"`
	// Change is how far its mean JCT is from that of the first system under the same seed, relative to it; nothing of
	// the first.
	Change *spread `json:"mean_jct_change,omitempty"`
}

// seedsDocs returns one for each system that has a run.
func (c *comparison) seedsDocs() (docs []seedsDoc) {
	if c.seeds == 0 {
		return nil
	}
	groups := c.bySystem()
	for i, runs := range groups {
		of := func(figure func(r *systemRun) float64) spread { return c.over(runs, figure) }
		d := seedsDoc{System: runs[0].request.System, First: c.shared.NoiseSeed, Runs: len(runs),
			Draws:       !slices.Contains(c.same, runs[0].request.System),
			Finished:    of(func(r *systemRun) float64 { return float64(r.outcome.Finished) }),
			AvgJCT:      of(func(r *systemRun) float64 { return r.outcome.AvgJCT }),
			P95JCT:      of(func(r *systemRun) float64 { return r.outcome.P95JCT }),
			AvgQueue:    of(func(r *systemRun) float64 { return r.outcome.AvgQueue }),
			Makespan:    of(func(r *systemRun) float64 { return r.outcome.Makespan }),
			Preemptions: of(func(r *systemRun) float64 { return float64(r.outcome.Preemptions) }),
			GPUBusy:     of(func(r *systemRun) float64 { return r.outcome.GPUBusy })}
		if i > 0 {
			d.Change = c.changeOf(runs, groups[0])
		}
		docs = append(docs, d)
	}
	return docs
}

// changeOf returns how far the mean JCT of runs is from that of base under the same seed; nil where there is none. A
// system under which nothing is drawn has the same run for each.
func (c *comparison) changeOf(runs, base []systemRun) *spread {
	sameRuns := slices.Contains(c.same, runs[0].request.System)
	sameBase := slices.Contains(c.same, base[0].request.System)
	var values []float64
	for i := range runs {
		for k := range base {
			x, y := &runs[i], &base[k]
			if (x.seed == y.seed || sameRuns || sameBase) && y.outcome.AvgJCT > 0 {
				values = append(values, x.outcome.AvgJCT/y.outcome.AvgJCT-1)
			}
		}
	}
	if len(values) == 0 {
		return nil
	}
	s := spreadOf(values, sameRuns && sameBase)
	return &s
}

// seedsTable returns one row per system.
func (c *comparison) seedsTable(width int) string {
	t := &term.Table{}
	t.Add("", "", "avg", "95 %", "", "95 %", "avg", "pre-", "")
	t.Add("system", "finished", "JCT", "interval", "", "interval", "queue", "empted", "busy")
	for _, d := range c.seedsDocs() {
		change, within := "", ""
		if d.Change != nil {
			change = term.Change(1+d.Change.Mean, 1)
			within = d.Change.within(func(x float64) string { return term.Change(1+x, 1) })
		}
		interval := "same"
		if d.Draws {
			interval = d.AvgJCT.within(term.ShortTime)
		}
		t.Add(d.System, rounded(d.Finished.Mean), term.ShortTime(d.AvgJCT.Mean), interval, change, within,
			term.ShortTime(d.AvgQueue.Mean), rounded(d.Preemptions.Mean), term.Percent(d.GPUBusy.Mean))
	}
	return t.Text(width)
}

// within prints the interval; - where there is none.
func (s *spread) within(text func(float64) string) string {
	if s.Low == nil {
		return "-"
	}
	return text(max(*s.Low, -1)) + ".." + text(*s.High)
}

// rounded prints a mean of numbers.
func rounded(x float64) string { return strconv.FormatFloat(math.Round(x), 'f', -1, 64) }

// seedsNotes says what the table over seeds shows.
func (c *comparison) seedsNotes() (notes []string) {
	if drawn := len(c.bySystem()) - len(c.same); drawn > 0 {
		first := c.shared.NoiseSeed
		means := fmt.Sprintf("Means over the seeds %d to %d, with 95 %% intervals by Student's t", first,
			first+uint64(c.seeds)-1)
		if c.seeds == 1 {
			means = fmt.Sprintf("Of seed %d alone, so without intervals", first)
		}
		notes = append(notes, means+"; changes are against the first system under the same seed.")
	}
	if len(c.same) > 0 {
		notes = append(notes, "Nothing is drawn at random (no node failures, no noise), so that any seed gives the "+
			"same simulation, made once: "+strings.Join(c.same, ", ")+".")
	}
	first := c.runs[0].outcome.Finished
	if slices.ContainsFunc(c.runs, func(r systemRun) bool { return r.outcome.Finished != first }) {
		notes = append(notes, "The simulations did not finish the same number of jobs: their times compare only so "+
			"far.")
	}
	return notes
}
