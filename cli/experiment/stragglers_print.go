package experiment

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/trainyard/trainyard/simulate"
)

const stragglerHead = `GPUs that are slow for a while: found by the progress of jobs (watch), known at
once (oracle), or not known of (none).
`

const stragglerFoot = `
lost      GPU-hours that jobs lost to slow GPUs, for each fault; the restarts of
          those that moved away are in the JCT alone
found     faults of which a GPU was taken to be slow while they lasted, of those
          that a job worked on
delay     from the start of a fault until then: median and 90 %
Ratios of average JCT are means over paired seeds with 95 % bootstrap intervals.
`

func printStragglers(w io.Writer, parts []*stragglerPart, q *quietTime) error {
	var b strings.Builder
	b.WriteString(stragglerHead)
	fmt.Fprintf(&b, "\nCluster  %s, offered load %v\nTrace    %d generated jobs, Philly's widths, durations cut at "+
		"a day\nReports  every %g s, noise %g %% (lognormal); restart %g s\nSeeds    1 to %d; one fault a day\n",
		stragglerCluster, stragglerLoad, palJobs, stragglerReport.Seconds(), 100*stragglerNoise, restart.Seconds(),
		parts[0].Seeds)
	for _, p := range parts {
		fmt.Fprintf(&b, "\n== %s, %d faults, realised load %.2f\n\n%-13s %9s %-19s %6s %6s %7s %s\n", p.Scenario,
			p.Faults, p.Load, "system knows", "avg JCT s", "lost GPU-h", "moves", "quar.", "found", "delay s")
		for i := range p.Rows {
			r := &p.Rows[i]
			fmt.Fprintf(&b, "%-13s %9.0f %-19s %6.0f %6.1f", r.System+" "+r.Knows, r.AvgJCT.Mean, hours(r.Lost),
				r.Moves, r.Quarantines)
			if r.Knows == "watch" {
				fmt.Fprintf(&b, " %7s %.0f, %.0f", fmt.Sprintf("%d/%d", r.Found, r.Met), r.Detect50, r.Detect90)
			}
			b.WriteByte('\n')
			if r.Unfinished > 0 {
				fmt.Fprintf(&b, "%-13s %d jobs did not finish\n", "", r.Unfinished)
			}
		}
		fmt.Fprintf(&b, "\n%-13s %-22s %s\n", "avg JCT", "/ none", "/ oracle")
		for i := range p.Rows {
			if r := &p.Rows[i]; r.Knows == "watch" {
				fmt.Fprintf(&b, "%-13s %-22s %s\n", r.System, r.OverNone, r.OverOracle)
			}
		}
	}
	fmt.Fprintf(&b, "\n== no faults: %.0f GPU-days, %d reports, PAL that watches\n\n%.2f quarantines and %.2f GPUs "+
		"said to be slow in 1,000 GPU-days\n",
		q.GPUDays, q.Reports, q.Quarantines, q.Said)
	b.WriteString(stragglerFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

// hours prints an estimate with one digit.
func hours(e simulate.Interval) string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%.1f", e.Mean)
	}
	return fmt.Sprintf("%.1f [%.1f, %.1f]", e.Mean, e.Low, e.High)
}
