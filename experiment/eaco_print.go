package experiment

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/trainyard/model/interference"
)

const eacoHead = `EaCO: energy-aware co-location, against fifo, fifo-packed and gandiva.
Published, EaCO over each (text of the paper): energy 0.61 of fifo, 0.755 of
fifo_packed, 0.917 of gandiva on 28 nodes, 0.61 of each on 64; active nodes 0.70,
0.71, 0.96 and 0.53; run time at most 1.0323. Its trace, load, deadlines,
thresholds and idle power are not told.
`

const eacoFoot = `
Jobs ask for one node of 8 GPUs, one of the four measured models each; restart
62 s. "awake": idle nodes draw 650 W; "asleep": idle nodes sleep at 0 W, which is
what the published figures must rest on. Ratios are over fifo: of energy with
the same rule ("/ fifo") and without it ("/ fifo awake"): what is between the two
is what sleep saves. EaCO learns how sets slow each other; the others are told.
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
	fmt.Fprintf(b, "\n== %s\nCluster  %dx8, offered load %.2f\nSeeds    1 to %d; intervals: 95 %% bootstrap over seeds\n\n", p.Name, p.Nodes, p.Load, p.Seeds)
	fmt.Fprintf(b, "%-19s %8s %7s %9s %9s %6s  %-19s %-19s %s\n", "mean", "kWh", "active", "JCT h", "run h", "undone", "energy / fifo", "/ fifo awake", "run / fifo")
	for i := range p.Rows {
		r := &p.Rows[i]
		name := r.System + " awake"
		if r.Sleep {
			name = r.System + " asleep"
		}
		fmt.Fprintf(b, "%-19s %8.0f %7.1f %9.2f %9.2f %6.0f  %-19s %-19s %s\n", name, r.KWh, r.Nodes, r.JCT/3600, r.Run/3600, r.Undos, r.Energy, r.Total, r.Runtime)
		if r.Unfinished > 0 {
			fmt.Fprintf(b, "%-19s %d jobs did not finish\n", "", r.Unfinished)
		}
	}
}

// genericSets are all pairs of the four models, each slowed by the generic factor.
func genericSets() []interference.Set {
	var sets []interference.Set
	for i, a := range eacoHours {
		for _, c := range eacoHours[i:] {
			x := interference.Generic(2)
			sets = append(sets, interference.Set{Place: interference.Place{GPU: untyped, Width: 8}, Models: []string{a.model, c.model}, Slow: []float64{x, x}})
		}
	}
	return sets
}
