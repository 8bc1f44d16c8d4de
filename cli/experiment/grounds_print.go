package experiment

import (
	"fmt"
	"strings"
)

// text returns the matrix, the verdicts, and what they follow from.
func (m *groundsDoc) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Half       %s; %d simulations of %d set of constants, %s\n", m.Half, m.Runs, m.Sets,
		m.Constants)
	b.WriteString("Ratio      mean completion time of worth, or energy, which learns sizes, over that of the system " +
		"named;\n" +
		"           95 % intervals by t of logarithms, p after Holm over all rows\n")
	for _, g := range m.Grounds {
		fmt.Fprintf(&b, "\n%s: %s", g.Name, g.Verdict)
		if g.Pooled != nil {
			fmt.Fprintf(&b, ", %v over all rows", *g.Pooled)
		}
		b.WriteString("\n")
		for _, r := range g.Rows {
			r.print(&b)
		}
	}
	fmt.Fprintf(&b, "\nRows worse: %s\n", listed(m.Worse))
	if m.Partial {
		b.WriteString("Rule and gate: not judged, for one ground alone was played\n")
		return b.String()
	}
	fmt.Fprintf(&b, "Grounds better: %d of 7, want %d\n", m.Better, mustBetter)
	fmt.Fprintf(&b, "Rule: %s\n", map[bool]string{true: "worth wins", false: "worth does not win"}[m.Wins])
	fmt.Fprintf(&b, "Gate for the default, which the half for deciding binds: %s\n", gateLine(m.Failed))
	return b.String()
}

// print prints a row, and below it those that are set apart.
func (r *rowDoc) print(b *strings.Builder) {
	if r.Missing != "" {
		fmt.Fprintf(b, "  %s\n    %s\n", r.Name, r.Verdict)
		return
	}
	fmt.Fprintf(b, "  %s\n    %-38s %-24v %s; n %d, p %.3g, p99 %.2f, longest wait %.2f\n", r.Name, "over "+r.Best,
		r.Ratio, r.Verdict, r.Pairs, r.P, r.P99, r.Longest)
	if r.Run > 0 {
		fmt.Fprintf(b, "    %-38s %.3f\n", "time with GPUs, over that of the same", r.Run)
	}
	if r.Paid != nil {
		fmt.Fprintf(b, "    %-38s %v\n", "money spent, over that of the same", *r.Paid)
	}
	for _, o := range r.Others {
		note := "over the same"
		if o.Knows != "" {
			note += ", knows " + o.Knows + "; no part of the rule"
		}
		fmt.Fprintf(b, "    %-38s %-24v %s\n", o.Name, o.Ratio, note)
	}
}

// listed joins names, one a line; none.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(append([]string{""}, names...), "\n  ")
}

// gateLine says whether the gate holds.
func gateLine(failed []string) string {
	if len(failed) == 0 {
		return "holds"
	}
	return "does not hold" + listed(failed)
}
