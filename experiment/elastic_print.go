package experiment

import (
	"fmt"
	"io"
	"strings"
)

const elasticHead = `Elastic scaling: GPUs and batch sizes by dynamic programming, against the same
with fixed batch sizes and against other systems.
Published (abstract), against scaling the GPUs at a fixed batch size: up to 2x
the jobs completed, up to 10x shorter mean completion time.
`

const elasticFoot = `
What a batch size costs in epochs is in all completion times, whatever an
objective assumes. Jobs of three kinds (bound by compute, balanced, bound by
communication) and three lengths, ours; up to 16 GPUs each. Speeds are known,
restarts cost 62 s. The paper's set-up is not known beyond its abstract, so
this is no reproduction: direction, and our own factors.
`

func printElastic(w io.Writer, size elasticSize, parts []elasticPart) error {
	var b strings.Builder
	b.WriteString(elasticHead)
	fmt.Fprintf(&b, "\nEpochs   %s\nWindow   %v of arrivals; jobs completed in it, completion time of all\nSeeds    1 to %d\n", parts[0].Epochs, size.window, size.seeds)
	for i := range parts {
		parts[i].print(&b)
	}
	best := elasticBest(parts)
	fmt.Fprintf(&b, "\nAt most, goodput over fixed batch sizes (min, max, random, best), in any part:\n%.2fx the jobs in the window, %.2fx shorter JCT (queue); published 2x, 10x\n",
		best.Jobs, best.JCT)
	b.WriteString(elasticFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *elasticPart) print(b *strings.Builder) {
	fmt.Fprintf(b, "\n== %s, %s arrivals, %s: %.0f jobs\n\n%-26s %9s %10s %7s %7s %8s\n", p.Cluster, p.Arrivals, p.Mode, p.Jobs,
		"system", "in window", "avg JCT s", "dropped", "busy", "resizes")
	for i := range p.Rows {
		r := &p.Rows[i]
		fmt.Fprintf(b, "%-26s %9.0f %10.0f %6.1f%% %6.1f%% %8.0f\n", r.Name, r.InWindow, r.AvgJCT, 100*r.DropRatio, 100*r.Busy, r.Resizes)
		if r.Unfinished > 0 {
			fmt.Fprintf(b, "%-26s %d jobs did not finish\n", "", r.Unfinished)
		}
	}
}
