package experiment

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/stage/share"
)

const eacoHead = `EaCO: energy-aware co-location, against fifo, fifo-packed and gandiva.
Published, EaCO over each (text of the paper): energy 0.61 of fifo, 0.755 of
fifo_packed, 0.917 of gandiva on 28 nodes, 0.61 of each on 64; active nodes 0.70,
0.71, 0.96 and 0.53; run time at most 1.0323. Its trace, load, deadlines,
thresholds and idle power are not given.
`

const eacoFoot = `
Jobs ask for one node of 8 GPUs, one of the four measured models each; restart
62 s. "awake": idle nodes draw 650 W; "asleep": idle nodes sleep at 0 W, which is
what the published figures must rest on. Ratios are over fifo: of energy with
the same rule ("/ fifo") and without it ("/ fifo awake"): what is between the two
is what sleep saves. EaCO learns how sets slow each other; the others know it.
"limit": how much slower than alone a job may become, 1.10 where nothing is
said. "capped": jobs run under the power cap of least energy of their GPU that
lets them take 1.2 times as long; Zeus measured ResNet-50 alone of the four, so
that the others go without, or, "all", by its curve.
`

func printEaCO(w io.Writer, parts []*eacoPart) error {
	var b strings.Builder
	b.WriteString(eacoHead)
	for _, p := range parts {
		p.print(&b)
	}
	b.WriteString(eacoFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

func (p *eacoPart) print(b *strings.Builder) {
	fmt.Fprintf(b, "\n== %s\nCluster  %dx8, offered load %.2f\nSeeds    1 to %d; intervals: 95 %% bootstrap over "+
		"seeds\n\n", p.Name, p.Nodes, p.Load, p.Seeds)
	fmt.Fprintf(b, "%-29s %8s %7s %9s %9s %6s  %-19s %-19s %s\n", "mean", "kWh", "active", "JCT h", "run h", "undone",
		"energy / fifo", "/ fifo awake", "run / fifo")
	for i := range p.Rows {
		r := &p.Rows[i]
		name := r.System + " awake"
		switch {
		case r.With != "":
			name = r.System + ", " + r.With
		case r.Sleep:
			name = r.System + " asleep"
		}
		if r.With != "" && p.Rows[i-1].With == "" {
			b.WriteString("asleep:\n")
		}
		fmt.Fprintf(b, "%-29s %8.0f %7.1f %9.2f %9.2f %6.0f  %-19s %-19s %s\n", name, r.KWh, r.Nodes, r.JCT/3600,
			r.Run/3600, r.Undos, r.Energy, r.Total, r.Runtime)
		if r.Unfinished > 0 {
			fmt.Fprintf(b, "%-29s %d jobs did not finish\n", "", r.Unfinished)
		}
	}
	b.WriteString("\njob time of eaco by jobs on a node, and what it adds to run time over work:\n")
	for i := range p.Rows {
		if r := &p.Rows[i]; r.System == "eaco" && r.Sleep && r.caps == nil {
			r.printCompanies(b)
		}
	}
}

// printCompanies says where the run time of eaco comes from.
func (r *eacoRow) printCompanies(b *strings.Builder) {
	name := r.With
	if name == "" {
		name = fmt.Sprintf("limit %.2f", share.DefaultSlow)
	}
	fmt.Fprintf(b, "%-12s", name)
	for n := 1; n <= share.DefaultMost; n++ {
		share, excess := 0.0, 0.0
		for _, c := range r.Companies {
			if len(c.Models) == n {
				share, excess = share+c.Share, excess+c.Excess
			}
		}
		fmt.Fprintf(b, "  %d: %4.1f %% +%.2f %%", n, 100*share, 100*excess)
	}
	b.WriteByte('\n')
}

// genericSets are all pairs of the four models, each slowed by the generic factor.
func genericSets() []interference.Set {
	var sets []interference.Set
	for i, a := range eacoHours {
		for _, c := range eacoHours[i:] {
			x := interference.Generic(2)
			sets = append(sets, interference.Set{Place: interference.Place{GPU: simulate.Untyped, Width: 8},
				Models: []string{a.model, c.model}, Slow: []float64{x, x}})
		}
	}
	return sets
}
