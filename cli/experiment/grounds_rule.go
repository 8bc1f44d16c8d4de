package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
)

// The rule by which worth wins, fixed before it was played.
const (
	significant = .05 // of the p values, after Holm over all rows
	worseFrom   = 1.01
	worseBound  = 1.03 // a lower end above is worse whatever the p value
	widest      = .05  // half of an interval, over its mean, beyond which a row has no verdict
	gateMean    = 1.03
	gateBound   = 1.06
	gateWaits   = 1.25
	equalSpend  = .01 // share by which money, or run time where energy is compared, may differ
	mustBetter  = 5   // grounds
)

// groundsDoc is what the experiment prints.
type groundsDoc struct {
	Schema     string       `json:"schema"`
	Experiment string       `json:"experiment"`
	Half       string       `json:"half"`      // choosing or deciding
	Constants  string       `json:"constants"` // digest of all constants
	Sets       int          `json:"constant_sets"`
	Runs       int          `json:"runs"`    // simulations
	Partial    bool         `json:"partial"` // one ground alone was played: neither rule nor gate can be judged
	Grounds    []*groundDoc `json:"grounds"`
	Worse      []string     `json:"rows_worse"`
	Better     int          `json:"grounds_better"`
	Wins       bool         `json:"wins"`        // no row is worse, and five grounds of seven are better
	Failed     []string     `json:"gate_failed"` // rows, with what failed
}

type groundDoc struct {
	Name string    `json:"name"`
	Rows []*rowDoc `json:"rows"`
	// Pooled is the geometric mean of the ratios of all rows, each once; nil: not all were played.
	Pooled  *simulate.Interval `json:"pooled"`
	Verdict string             `json:"verdict"`
}

type rowDoc struct {
	Name    string            `json:"name"`
	Best    string            `json:"best"` // system that was named before
	Missing string            `json:"missing,omitempty"`
	Worlds  int               `json:"worlds"`
	Pairs   int               `json:"pairs"`   // of worlds, or of weeks of arrivals
	Ratio   simulate.Interval `json:"ratio"`   // mean completion time, or energy, of worth over that of the best
	P       float64           `json:"p"`       // that the two are equal, after Holm over all rows; 1 = no interval
	P99     float64           `json:"p99"`     // ratio of the 99th percentiles
	Longest float64           `json:"longest"` // ratio of the longest times without GPUs
	// Paid is what worth paid for over what the best did, on average; nil = nothing is rented to a budget.
	Paid *simulate.Interval `json:"paid,omitempty"`
	// Run is the ratio of the times with GPUs, where energy is compared; else 0.
	Run     float64    `json:"run_time,omitempty"`
	Verdict string     `json:"verdict"`
	Others  []otherDoc `json:"others"` // over the best as well

	bar        float64
	energy     bool
	weekly     bool
	contenders []contender
	outcomes   [][]*simulate.Outcome // by contender and world
	paid       [][]float64           // likewise, GPUs on average
	log        sample
}

// otherDoc is another system of a row.
type otherDoc struct {
	Name  string            `json:"name"`
	Ratio simulate.Interval `json:"ratio"`
	Knows string            `json:"knows,omitempty"` // what it is given that others learn
}

// sample is the mean of logarithms of ratios, with what its interval follows from.
type sample struct {
	n              int
	mean, variance float64 // of the mean
	freedom        int
}

func sampleOf(logs []float64) sample {
	s := sample{n: len(logs), freedom: len(logs) - 1}
	for _, x := range logs {
		s.mean += x / float64(s.n)
	}
	if s.n < 2 {
		s.variance = math.NaN()
		return s
	}
	for _, x := range logs {
		s.variance += (x - s.mean) * (x - s.mean) / float64(s.n-1) / float64(s.n)
	}
	return s
}

// pooled is the mean of samples, each of which counts once. Degrees of freedom by Welch and Satterthwaite.
func pooled(list []sample) sample {
	all, below := sample{n: len(list)}, 0.0
	rows := float64(len(list))
	for _, s := range list {
		all.mean += s.mean / rows
		all.variance += s.variance / rows / rows
		below += math.Pow(s.variance/rows/rows, 2) / float64(max(s.freedom, 1))
	}
	all.freedom = max(1, int(min(all.variance*all.variance/max(below, 1e-300), 1e6)))
	return all
}

// interval returns the ratio, with its 95 % interval.
func (s sample) interval() simulate.Interval {
	return simulate.StudentRatio(s.mean, s.variance, s.freedom)
}

// p returns the probability of a mean so far from 0 or farther if it were 0; 1 where nothing is known of it.
func (s sample) p() float64 {
	switch {
	case s.n < 2 || s.mean == 0:
		return 1
	case s.variance == 0:
		return 0
	}
	return simulate.StudentBeyond(math.Abs(s.mean)/math.Sqrt(s.variance), s.freedom)
}

// judge computes all verdicts.
func (m *groundsDoc) judge() {
	var rows []*rowDoc
	for _, g := range m.Grounds {
		for _, r := range g.Rows {
			if r.Missing == "" {
				r.measure()
				rows = append(rows, r)
			}
		}
	}
	holm(rows)
	m.Worse, m.Failed = []string{}, []string{}
	for _, g := range m.Grounds {
		for _, r := range g.Rows {
			r.judge()
			if r.worse() {
				m.Worse = append(m.Worse, g.Name+": "+r.Name)
			}
			if why := r.gate(); why != "" {
				m.Failed = append(m.Failed, g.Name+": "+r.Name+": "+why)
			}
		}
		if g.judge(); g.Verdict == verdictBetter {
			m.Better++
		}
	}
	m.Wins = !m.Partial && len(m.Worse) == 0 && m.Better >= mustBetter
}

// holm raises the p values of rows so that all of them together are significant by chance as rarely as one alone.
func holm(rows []*rowDoc) {
	order := slices.Clone(rows)
	for _, r := range order {
		r.P = r.log.p()
	}
	slices.SortStableFunc(order, func(a, b *rowDoc) int { return cmp.Compare(a.P, b.P) })
	least := 0.0
	for i, r := range order {
		r.P = max(least, min(1, r.P*float64(len(order)-i)))
		least = r.P
	}
}

// index returns the number of a contender, -1 if it was not played.
func (r *rowDoc) index(name string) int {
	return slices.IndexFunc(r.contenders, func(c contender) bool { return c.Name == name })
}

// measure fills in the ratios.
func (r *rowDoc) measure() {
	best := r.index(r.Best)
	for i, c := range r.contenders {
		s := sampleOf(r.logs(i, best))
		switch {
		case i == 0:
			r.log, r.Pairs, r.Ratio = s, s.n, s.interval()
			r.P99 = r.over(best, func(o *simulate.Outcome) float64 { return o.P99JCT })
			r.Longest = r.over(best, func(o *simulate.Outcome) float64 { return o.MaxWait })
			r.Paid = r.spending(best)
			if r.energy {
				r.Run = r.over(best, func(o *simulate.Outcome) float64 { return o.AvgRun })
			}
		case i != best:
			other := otherDoc{Name: c.Name, Ratio: s.interval()}
			if c.Settings["sizes"] == "oracle" {
				other.Knows = "sizes"
			}
			r.Others = append(r.Others, other)
		}
	}
}

// logs returns the logarithms of the ratios of mean completion times of contender i over those of base, by world or by
// week of arrivals.
func (r *rowDoc) logs(i, base int) []float64 {
	var logs []float64
	for k := range r.outcomes[i] {
		a, b := r.outcomes[i][k], r.outcomes[base][k]
		if !r.weekly {
			logs = append(logs, math.Log(r.value(a)/r.value(b)))
			continue
		}
		x, y := weeks(a.PerJob), weeks(b.PerJob)
		for w := range min(len(x), len(y)) {
			if x[w] > 0 && y[w] > 0 {
				logs = append(logs, math.Log(x[w]/y[w]))
			}
		}
	}
	return logs
}

// value is what systems are compared by.
func (r *rowDoc) value(o *simulate.Outcome) float64 {
	if r.energy {
		return o.EnergyKWh
	}
	return o.AvgJCT
}

// weeks returns the mean completion times of the finished jobs by week of arrival, 0 where there are none.
func weeks(jobs []metrics.Job) (means []float64) {
	const week = sched.Time(7 * 24 * time.Hour)
	var counts []float64
	for i := range jobs {
		j := &jobs[i]
		if j.Outcome != sched.Finished {
			continue
		}
		w := int((j.Submit - jobs[0].Submit) / week)
		for len(means) <= w {
			means, counts = append(means, 0), append(counts, 0)
		}
		means[w] += j.JCT().Seconds()
		counts[w]++
	}
	for w := range means {
		means[w] /= max(counts[w], 1)
	}
	return means
}

// over returns the geometric mean over worlds of a time of worth over that of contender base. Less than a minute counts
// as one: next to nothing is no ratio.
func (r *rowDoc) over(base int, f func(*simulate.Outcome) float64) float64 {
	sum := 0.0
	for k, o := range r.outcomes[0] {
		const least = 60
		sum += math.Log(max(f(o), least) / max(f(r.outcomes[base][k]), least))
	}
	return math.Exp(sum / float64(len(r.outcomes[0])))
}

// spending returns the ratio of what worth paid for over what contender base did; nil where nothing is rented.
func (r *rowDoc) spending(base int) *simulate.Interval {
	if len(r.paid) == 0 || r.paid[0][0] == 0 {
		return nil
	}
	var logs []float64
	for k, paid := range r.paid[0] {
		logs = append(logs, math.Log(paid/r.paid[base][k]))
	}
	e := sampleOf(logs).interval()
	return &e
}

// unequal says that the two did not spend the same money, or time with GPUs, where that may be why one is better; "" =
// it is not so.
func (r *rowDoc) unequal() string {
	p := r.Paid
	if p != nil && (p.Mean > 1+equalSpend && r.Ratio.Mean < 1 || p.Mean < 1-equalSpend && r.Ratio.Mean > 1) {
		return fmt.Sprintf("%.3f of the other's money spent, want the same within %v %%", p.Mean, 100*equalSpend)
	}
	if r.Run > 1+equalSpend && r.Ratio.Mean < 1 {
		return fmt.Sprintf("run time %.3f of the other's, want no longer", r.Run)
	}
	return ""
}

// unfinished returns by how many unfinished jobs worth has more than the best, over all worlds.
func (r *rowDoc) unfinished() int {
	more, base := 0, r.index(r.Best)
	if r.Missing != "" {
		return 0
	}
	for k, o := range r.outcomes[0] {
		more += o.Unfinished - r.outcomes[base][k].Unfinished
	}
	return more
}

// The verdicts.
const (
	verdictBetter = "better"
	verdictWorse  = "worse"
	verdictEven   = "no worse"
)

// worse reports whether worth is worse on the row.
func (r *rowDoc) worse() bool {
	return r.Missing == "" && r.unequal() == "" && (r.unfinished() > 0 || r.Ratio.Low > worseBound ||
		r.Ratio.Mean > worseFrom && r.P < significant)
}

// judge gives a row its verdict.
func (r *rowDoc) judge() {
	half := (r.Ratio.High - r.Ratio.Low) / 2 / r.Ratio.Mean
	switch {
	case r.Missing != "":
		r.Verdict = "none: " + r.Missing
	case r.worse():
		r.Verdict = verdictWorse
	case r.unequal() != "":
		r.Verdict = "none: " + r.unequal()
	case r.Pairs < 2:
		r.Verdict = "none: one world alone has no interval; --seeds 2 or more has one"
	case !(half <= widest):
		r.Verdict = fmt.Sprintf("none: the interval is wider than %.0f %%", 100*widest)
	case r.Ratio.Mean < 1 && r.P < significant:
		r.Verdict = verdictBetter
	default:
		r.Verdict = verdictEven
	}
}

// gate says why the row keeps worth from being the default; "" = it does not.
func (r *rowDoc) gate() string {
	e := r.Ratio
	switch {
	case r.Missing != "":
		return "not played: " + r.Missing
	case r.unequal() != "":
		return r.unequal()
	case !(e.Mean <= gateMean) && !(e.Low <= 1 && e.High < gateBound):
		return fmt.Sprintf("%v, want a mean of at most %v, or an interval that holds 1 and ends below %v", e, gateMean,
			gateBound)
	case r.P99 > gateWaits || r.Longest > gateWaits:
		return fmt.Sprintf("p99 %.2f, longest wait %.2f, want at most %v", r.P99, r.Longest, gateWaits)
	}
	return ""
}

// judge gives a ground its verdict.
func (g *groundDoc) judge() {
	var all []sample
	byBar := make(map[float64][]sample)
	missing, single, unequal := 0, 0, 0
	for _, r := range g.Rows {
		if r.Missing != "" {
			missing++
			continue
		}
		if r.Pairs < 2 {
			single++
		}
		if r.unequal() != "" {
			unequal++
		}
		all = append(all, r.log)
		byBar[r.bar] = append(byBar[r.bar], r.log)
	}
	if missing > 0 {
		g.Verdict = fmt.Sprintf("none: %d of %d rows lack their traces", missing, len(g.Rows))
		return
	}
	if single > 0 {
		g.Verdict = fmt.Sprintf("none: %d of %d rows have one world alone, of which there is no interval", single,
			len(g.Rows))
		return
	}
	if unequal > 0 {
		g.Verdict = fmt.Sprintf("none: in %d of %d rows the two did not spend the same", unequal, len(g.Rows))
		return
	}
	mean := pooled(all).interval()
	g.Pooled = &mean
	reached := mean.High < 1
	for bar, rows := range byBar {
		reached = reached && math.Exp(pooled(rows).mean) <= 1-bar
	}
	switch {
	case reached:
		g.Verdict = verdictBetter
	case slices.ContainsFunc(g.Rows, (*rowDoc).worse):
		g.Verdict = verdictWorse
	default:
		g.Verdict = "not better"
	}
}
