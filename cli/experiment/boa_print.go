package experiment

import (
	"fmt"
	"io"
	"strings"

	"github.com/trainyard/trainyard/simulate"
)

const boaHead = `Renting to a budget: mean time of a job against the GPUs really paid for.
Published: 1.6x (implementation) and 2x (simulation) lower mean JCT at equal
budget than "state-of-the-art heuristic" schedulers; against which, at which
budgets, is not known to us. Ours against Pollux, on a reservation and with
autoscaling, stands last.
`

const boaFoot = `
paid      GPUs on average after the warm-up until the last arrival, from the
          request of a node until it has gone: boots and half-used nodes count
JCT       mean in seconds of jobs submitted after the warm-up
[ ]       95 % bootstrap interval over seeds
Widths follow from rates, sizes and curves seen so far; price: from curves seen
so far and a price that follows the spending, no rates. perfect, below the
dashes: by an oracle. reserved: so many GPUs at all times, jobs as wide as they
ask, but under elastic-fifo and pollux. for as much: Pollux, deciding every
300 s, autoscaled to a utility or on a reservation of so many GPUs (at), and
BOA, learned as well, on a budget of what that paid; times: mean JCT of Pollux
over that of BOA, by seeds.
`

func printBOA(w io.Writer, mixes []*boaMix) error {
	var b strings.Builder
	b.WriteString(boaHead)
	for _, m := range mixes {
		fmt.Fprintf(&b, "\nWorkload %s\nJobs     %.3g per hour, arriving at random for %g h, of which %g h "+
			"warm-up\nCluster  %s, boot %g s\nRestart  %s s,\n         at the first start as well\nSeeds    1 to %d\n",
			m.Name, m.Rate, m.Hours, m.WarmUp, m.Nodes, m.Boot, m.Restart, m.Seeds)
		fmt.Fprintf(&b, "\n%-23s %6s %-22s %s\n", "system", "budget", "paid", "JCT s")
		for i := range m.Rows {
			r := &m.Rows[i]
			name := ""
			if i%len(m.Budgets) == 0 {
				name = r.System
				if r.Oracle && (i == 0 || !m.Rows[i-1].Oracle) {
					b.WriteString(strings.Repeat("- ", 36) + "\n")
				}
			}
			fmt.Fprintf(&b, "%-23s %6g %-22s %s\n", name, r.Budget, within(r.Spend, 1), within(r.JCT, 0))
			if r.Left > 0 {
				fmt.Fprintf(&b, "%-23s %d jobs did not finish\n", "", r.Left)
			}
		}
		m.printPairs(&b)
	}
	b.WriteString(boaFoot)
	_, err := io.WriteString(w, b.String())
	return err
}

// printPairs prints Pollux, and BOA for as much money.
func (m *boaMix) printPairs(b *strings.Builder) {
	const line = "%-16s %4s %-20s %-19s %s"
	print := func(cells ...any) { b.WriteString(strings.TrimRight(fmt.Sprintf(line, cells...), " ") + "\n") }
	b.WriteString("\n")
	print("for as much", "at", "paid", "JCT s", "times")
	for i := range m.Pairs {
		p := &m.Pairs[i]
		at := p.Utility
		if at == 0 {
			at = p.Pollux.Budget
		}
		print(p.Pollux.System, fmt.Sprint(at), within(p.Pollux.Spend, 1), within(p.Pollux.JCT, 0), "")
		for k := range p.BOA {
			r := &p.BOA[k]
			print(r.System, "", within(r.Spend, 1), within(r.JCT, 0), within(p.Ratios[k], 2))
		}
	}
}

// within prints a mean and its interval with so many digits.
func within(e simulate.Interval, digits int) string {
	if e.Low != e.Low {
		return fmt.Sprintf("%.*f", digits, e.Mean)
	}
	return fmt.Sprintf("%.*f [%.*f, %.*f]", digits, e.Mean, digits, e.Low, digits, e.High)
}
