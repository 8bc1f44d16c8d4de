package variability

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Norm says what the score 1 stands for.
type Norm uint8

// ByGPU makes 1 the median of the GPUs' medians: each GPU counts once. ByRow makes it the median of all runs, as the
// released code does: there a GPU measured more often counts more. The two differ by a factor for all scores of a
// class, 1.0024 for the published ResNet-50 runs and at most 1.002 for the others, hence in no bin and no placement;
// but in the progress that is charged.
const (
	ByGPU Norm = iota
	ByRow
)

// Estimate is what several runs say of one GPU. All scores are over Measured.Norm.
type Estimate struct {
	GPU, Node string
	Score     float64 // median of the runs
	Low, High float64 // the median of all runs that might be made lies between, with the probability Coverage
	Coverage  float64 // at least 0.95 from 6 runs on; 0 for a single run: nothing is known of its error
	StdErr    float64 // standard error of Score; +Inf for a single run
	Worst     float64 // slowest run
	Count     int     // runs, >= 1
	Newest    sched.Time
}

// Measured is the estimates made from the runs of one class.
type Measured struct {
	Norm float64    // what the score 1 stands for, in the unit of the runs
	GPUs []Estimate // by name
	Runs int
}

// Measure makes an estimate for each GPU that has a run. No single run decides: in the published data a run can take
// 3.6 times as long as usual on a GPU that is not slow at all (the whole host was, for a while).
//
// The bounds are order statistics: with n runs, sorted, the median of the law they came from lies between numbers k and
// n+1-k with probability 1 - 2 P(Binomial(n, 1/2) < k), whatever the law; k is the largest that keeps this at 0.95, and
// 1 where none does. StdErr is 1.2533 * 1.4826 * MAD / sqrt(n), right for errors that are normal near the middle; MAD
// is the median distance from the median. Both take runs to be independent, which runs made together on one host are
// not.
//
// Deviation: the released code looks up GPUs by a number where a UUID is meant and so gives each GPU one random row of
// the file for ever; the median over a GPU's runs, which it intends, is what we compute.
func Measure(runs []Run, norm Norm) (*Measured, error) {
	if len(runs) == 0 {
		return nil, fmt.Errorf("variability: no runs, want at least one")
	}
	perfs := make([]float64, len(runs))
	for i := range runs {
		if wanted := checkRun(&runs[i]); wanted != "" {
			return nil, fmt.Errorf("variability: run %d: GPU %s, perf %v, want %s", i, csvtable.Quote(runs[i].GPU),
				runs[i].Perf, wanted)
		}
		perfs[i] = runs[i].Perf
	}
	sorted := slices.Clone(runs)
	slices.SortStableFunc(sorted, func(a, b Run) int { return strings.Compare(a.GPU, b.GPU) })
	m := &Measured{Runs: len(runs)}
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && sorted[to].GPU == sorted[from].GPU {
			to++
		}
		m.GPUs = append(m.GPUs, estimate(sorted[from:to]))
		from = to
	}
	if m.Norm = median(perfs); norm == ByGPU {
		mids := make([]float64, len(m.GPUs))
		for i := range m.GPUs {
			mids[i] = m.GPUs[i].Score
		}
		m.Norm = median(mids)
	}
	for i := range m.GPUs {
		e := &m.GPUs[i]
		for _, x := range []*float64{&e.Score, &e.Low, &e.High, &e.StdErr, &e.Worst} {
			*x /= m.Norm
		}
		if e.Score < MinScore || e.Score > MaxScore {
			return nil, fmt.Errorf("variability: GPU %s: score %v, want a number in %v..%v", csvtable.Quote(e.GPU),
				e.Score, MinScore, MaxScore)
		}
	}
	return m, nil
}

// estimate sums up the runs of one GPU, in their own unit.
func estimate(runs []Run) Estimate {
	e := Estimate{GPU: runs[0].GPU, Count: len(runs)}
	perfs := make([]float64, len(runs))
	for i, run := range runs {
		perfs[i] = run.Perf
		e.Newest = max(e.Newest, run.At)
		if e.Node == "" {
			e.Node = run.Node
		}
	}
	slices.Sort(perfs)
	n := len(perfs)
	k, coverage := middle(n)
	e.Score, e.Low, e.High, e.Coverage, e.Worst = median(perfs), perfs[k-1], perfs[n-k], coverage, perfs[n-1]
	e.StdErr = math.Inf(1)
	if n > 1 {
		away := make([]float64, n)
		for i, p := range perfs {
			away[i] = math.Abs(p - e.Score)
		}
		// 1.4826 makes a standard deviation of a MAD, 1.2533 = sqrt(pi/2) the error of a median of that of a mean.
		e.StdErr = 1.2533 * 1.4826 * median(away) / math.Sqrt(float64(n))
	}
	return e
}

// middle returns the k of Measure for n runs, and the probability that goes with it.
func middle(n int) (k int, coverage float64) {
	const want = 0.95
	if n > 1000 { // the normal law is near enough, and the powers of 1/2 below would vanish
		return max(1, int(float64(n)/2-0.98*math.Sqrt(float64(n)))), want
	}
	// below: P(Binomial(n, 1/2) < k); term: P(... == k)
	term := math.Pow(0.5, float64(n))
	below := term
	for k = 1; ; k++ {
		term *= float64(n-k+1) / float64(k)
		if 1-2*(below+term) < want {
			return k, max(0, 1-2*below)
		}
		below += term
	}
}

// ClassRuns is what was measured for one class.
type ClassRuns struct {
	Class    string
	Measured *Measured
}

// Missing is a GPU that Join left out: it has no score in Class.
type Missing struct{ GPU, Class string }

// Join makes a table of the GPUs that were measured in all classes, by name; table is what errors call it. GPUs that
// lack a class are left out and reported, once each, with the first class they lack. It is an error if no GPU is left.
// The node of a GPU is that of the first class that knows it.
func Join(table string, classes []ClassRuns) (*Scores, []Missing, error) {
	s := &Scores{Name: table, PM: make([][]float64, len(classes))}
	type row struct {
		node string
		pm   []float64 // 0 = not measured
	}
	rows := make(map[string]*row)
	var names []string
	for c, class := range classes {
		s.Classes = append(s.Classes, class.Class)
		for i := range class.Measured.GPUs {
			e := &class.Measured.GPUs[i]
			r := rows[e.GPU]
			if r == nil {
				r = &row{pm: make([]float64, len(classes))}
				rows[e.GPU] = r
				names = append(names, e.GPU)
			}
			if r.pm[c] = e.Score; r.node == "" {
				r.node = e.Node
			}
		}
	}
	slices.Sort(names)
	var missing []Missing
	for _, name := range names {
		r := rows[name]
		if c := slices.Index(r.pm, 0); c >= 0 {
			missing = append(missing, Missing{name, s.Classes[c]})
			continue
		}
		s.GPUs = append(s.GPUs, GPU{name, r.node})
		for c, pm := range r.pm {
			s.PM[c] = append(s.PM[c], pm)
		}
	}
	if err := s.Validate(); err != nil {
		return nil, missing, err
	}
	return s, missing, nil
}
