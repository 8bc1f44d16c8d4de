package experiment

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/trainyard/simulate"
)

const elasticHead = `Elastic scaling: GPUs and batch sizes by dynamic programming, against the same
with fixed batch sizes and against other systems.
Published (abstract), against scaling the GPUs at a fixed batch size: up to 2x
the jobs completed, up to 10x shorter mean completion time.
`

const elasticFoot = `
[ ]        95 % bootstrap interval over seeds
x JCT      of the first row, on the same jobs
goodput    what is divided by; the rows below are scaled in the same way, but
           for throughput alone, or with fixed batch sizes: the least, largest,
           any or best (on one GPU) of each job's, or the least on each GPU.
           Then other systems, which choose batch sizes by goodput and drop
           no one

What a batch size costs in epochs is in all completion times, whatever an
objective assumes. Jobs of three kinds (bound by compute, balanced, bound by
communication) and three lengths, ours; up to 16 GPUs each. Speeds are known,
restarts cost 62 s. The paper's set-up is not known beyond its abstract, so
this is no reproduction: direction, and our own factors.
`

func printElastic(w io.Writer, size elasticSize, parts []elasticPart) error {
	var b strings.Builder
	b.WriteString(elasticHead)
	fmt.Fprintf(&b, "\nEpochs   %s\nWindow   %v of arrivals; jobs completed in it, completion time of all\nSeeds    "+
		"1 to %d\n", parts[0].Epochs, size.window, size.seeds)
	for i := range parts {
		parts[i].print(&b)
	}
	best := elasticBest(parts)
	fmt.Fprintf(&b, "\nAt most, goodput over fixed batch sizes (min, max, random, best), in any part:\n%sx the jobs "+
		"in the window,\n%sx shorter JCT (queue); published 2x, 10x\n",
		manifold(best.Jobs), manifold(best.JCT))
	b.WriteString(elasticFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *elasticPart) print(b *strings.Builder) {
	last := "x JCT"
	if p.Mode == "drop" {
		last = "dropped %"
	}
	fmt.Fprintf(b, "\n== %s, %s arrivals, %s: %.0f jobs\n\n%-12s %-15s %-20s %-17s %5s %6s\n", p.Cluster, p.Arrivals,
		p.Mode, p.Jobs,
		"system", "in window", "avg JCT s", last, "busy%", "resize")
	for i := range p.Rows {
		r := &p.Rows[i]
		said := manifold(r.Faster)
		if p.Mode == "drop" {
			said = within(r.DropRatio.Scaled(100), 1)
		}
		fmt.Fprintf(b, "%-12s %-15s %-20s %-17s %5.1f %6.0f\n", r.Name, within(r.InWindow, 0), within(r.AvgJCT, 0),
			said, 100*r.Busy.Mean, r.Resizes.Mean)
		if r.Unfinished > 0 {
			fmt.Fprintf(b, "%-12s %d jobs did not finish\n", "", r.Unfinished)
		}
	}
}

// manifold prints a ratio.
func manifold(e simulate.Interval) string {
	if e.Mean >= 9.95 {
		return within(e, 1)
	}
	return within(e, 2)
}
