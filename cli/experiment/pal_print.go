package experiment

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const palHead = `PAL: placement by class, PM score and locality, against packed placement.
Published, as ratios: Fig. 10 of the artifact's README, average JCT over
packed-sticky: PAL 0.57, PM-First 0.60. Abstract, PAL over the state of the art:
geomean JCT 0.58, GPU utilisation 1.28, makespan 0.53.
`

const palFoot = `
Ratios below 1 mean less time. The gain published rests on one or two of 64
GPUs that a single bad run made 2.6 to 2.8 times slower for good; with scores
that last it is what "per-GPU medians" shows. Order fifo; a gang on several
nodes takes 1.7 times as long; PAL and PM-First know the scores and, to weigh
moves, how long jobs will run.
`

const palReplica = "ʀ computed by a replica of the released simulator, not by Trainyard's engine.\n"

func printPAL(w io.Writer, parts []*palPart) error {
	var b strings.Builder
	b.WriteString(palHead)
	for _, p := range parts {
		p.print(&b)
	}
	b.WriteString(palFoot)
	if slices.ContainsFunc(parts, func(p *palPart) bool { return p.Preset != "" }) {
		b.WriteString(palReplica)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *palPart) print(b *strings.Builder) {
	engine := "ours"
	if p.Preset != "" {
		engine = "preset " + p.Preset + " ʀ"
	}
	fmt.Fprintf(b, "\n== %s\nTrace    %s\nCluster  %s, offered load %.2f\nScores   %s\nRuntime  %s, rounds of %g s, "+
		"restart %g s, spread penalty %g\nSeeds    1 to %d; intervals: %s\n\n",
		p.Name, p.Trace, p.Cluster, p.Load, p.Scores, engine, p.Round, p.Restart, p.Spread, p.Seeds, p.Interval)
	fmt.Fprintf(b, "%-13s %10s %10s %10s %6s %6s\n", "mean", "avg JCT s", "geo JCT s", "makespan s", "busy", "moves")
	for i := range p.Rows {
		r := &p.Rows[i]
		fmt.Fprintf(b, "%-13s %10.0f %10.0f %10.0f %5.1f%% %6.0f\n", r.System, r.AvgJCT, r.GeomeanJCT, r.Makespan,
			100*r.Busy, r.Moves)
		if r.Unfinished > 0 {
			fmt.Fprintf(b, "%-13s %d jobs did not finish\n", "", r.Unfinished)
		}
	}
	for base, of := range []func(*palRow) *palRatios{
		func(r *palRow) *palRatios { return &r.OverSticky },
		func(r *palRow) *palRatios { return &r.OverPacked },
	} {
		fmt.Fprintf(b, "\n%-19s %-20s %-20s %s\n", "/ "+palSystems[base], "avg JCT", "geo JCT", "makespan")
		for i := range p.Rows[base+1:] {
			r := &p.Rows[base+1+i]
			x := of(r)
			fmt.Fprintf(b, "%-19s %-20s %-20s %s\n", r.System, x.AvgJCT, x.GeomeanJCT, x.Makespan)
		}
	}
}
