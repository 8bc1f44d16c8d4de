package main

import (
	"fmt"
	"io"
	"math"
)

// report is all that was measured.
type report struct {
	Runs []comparison `json:"runs"` // one for each seed
	Sums []sums       `json:"sums"` // boa first
}

// sums are a system's figures over the seeds.
type sums struct {
	Name      string   `json:"system"`
	JCTError  interval `json:"jct_error"`           // simulated over real, less 1
	Ratio     interval `json:"jct_ratio"`           // real JCT over that of boa with the same seed
	Simulated interval `json:"jct_ratio_simulated"` // the same of the simulations
	Slots     interval `json:"slot_seconds_ratio"`  // real slot-seconds over those of boa
}

// interval is a mean and where that of all seeds lies in 95 of 100 cases, if figures are normal.
type interval struct {
	Mean float64 `json:"mean"`
	Half float64 `json:"half_width"` // 0 = of one seed nothing is known
}

// student are the quantiles 0.975 of Student's t with 1, 2, ... degrees of freedom; beyond them the normal one is near
// enough.
var student = []float64{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26}

// intervalOf sums up one figure by seed, at least one.
func intervalOf(x []float64) interval {
	n, i := float64(len(x)), interval{}
	for _, a := range x {
		i.Mean += a / n
	}
	if len(x) < 2 {
		return i
	}
	square := 0.0
	for _, a := range x {
		square += float64((a - i.Mean) * (a - i.Mean))
	}
	t := 1.96
	if len(x)-2 < len(student) {
		t = student[len(x)-2]
	}
	i.Half = t * math.Sqrt(square/(n-1)/n)
	return i
}

// sum sums up comparisons of the same systems.
func sum(list []comparison) (all []sums) {
	for k := range list[0].Rows {
		over := func(f func(r, boa *row) float64) interval {
			x := make([]float64, len(list))
			for i := range list {
				x[i] = f(&list[i].Rows[k], &list[i].Rows[0])
			}
			return intervalOf(x)
		}
		all = append(all, sums{
			Name:      list[0].Rows[k].Name,
			JCTError:  over(func(r, _ *row) float64 { return r.JCTError }),
			Ratio:     over(func(r, boa *row) float64 { return r.Real.JCT / boa.Real.JCT }),
			Simulated: over(func(r, boa *row) float64 { return r.Simulated.JCT / boa.Simulated.JCT }),
			Slots:     over(func(r, boa *row) float64 { return r.Real.SlotSeconds / boa.Real.SlotSeconds }),
		})
	}
	return all
}

// printSums says what the comparisons come to.
func printSums(w io.Writer, all []sums) error {
	for i := range all {
		s := &all[i]
		text := fmt.Sprintf("%s: the simulation is off by %s in JCT", s.Name, s.JCTError.text(100, "%+.1f", " %"))
		if i > 0 {
			text += fmt.Sprintf("; %s times as long as boa, simulated %s times, on %s times its slot-seconds",
				s.Ratio.text(1, "%.2f", ""),
				s.Simulated.text(1, "%.2f", ""), s.Slots.text(1, "%.2f", ""))
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// text says an interval in other units.
func (i interval) text(by float64, format, unit string) string {
	text := fmt.Sprintf(format, i.Mean*by)
	if i.Half > 0 {
		text += " ± " + fmt.Sprintf("%.2g", i.Half*by)
	}
	return text + unit
}
