package past

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/system"
)

// whatifText says for people how the jobs fared, and would have.
func whatifText(h *History, rows []Row, width int) string {
	if h.Ended == 0 {
		return term.Wrap(nothingEnded(h), width, 2) + "\n"
	}
	t := term.Table{Left: 2}
	t.Add("system", "", "jobs", "mean jct", "change", "p95 jct", "queued", "makespan", "busy", "preempted")
	var notes []string
	base := itself(rows)
	for i := range rows {
		r := &rows[i]
		if r.Err != nil {
			notes = append(notes, fmt.Sprintf("%s cannot be simulated: %v.", r.System, r.Err))
			continue
		}
		what, diff := "simulated", ""
		if r.Recorded {
			what = "happened"
		} else if base != nil && r != base {
			diff = term.Change(r.MeanJCT, base.MeanJCT)
		}
		if withinError(r, base) {
			diff += " ?"
		}
		t.Add(r.System, what, strconv.Itoa(r.Jobs), term.ShortTime(r.MeanJCT), diff, term.ShortTime(r.P95JCT),
			term.ShortTime(r.MeanQueue), term.ShortTime(r.Makespan),
			term.Percent(r.Busy), strconv.FormatInt(r.Preemptions, 10))
	}
	text := t.Text(width) + "\n"
	for i := range rows {
		notes = append(notes, priceNotes(&rows[i])...)
	}
	for _, note := range append(notes, severalNote(h), errorNote(rows), bestNote(h, rows), countNote(h),
		costNote(&h.Measured)) {
		if note != "" {
			text += term.Wrap(note, width, 2) + "\n"
		}
	}
	return text
}

// nothingEnded says that there is nothing to compare.
func nothingEnded(h *History) string {
	text := "No job has ended: there is nothing to compare yet."
	if h.Censored > 0 {
		text += fmt.Sprintf(" %s running or stopped.", term.Counted(h.Censored, "job"))
	}
	return text
}

// trusted is how far off a simulation of the system that decided may be in mean JCT for its figures to be taken as they
// are.
const trusted = 0.05

// itself returns the row of the simulation of the system that decided; nil if it was not simulated.
func itself(rows []Row) *Row {
	for i := range rows {
		if rows[i].Error != nil {
			return &rows[i]
		}
	}
	return nil
}

// withinError reports whether the mean JCT of a row differs from that of base, the simulation of the system that
// decided: by no more than that is off, and that is more than is trusted.
func withinError(r, base *Row) bool {
	if base == nil || r == base || r.Recorded || r.Err != nil {
		return false
	}
	off := math.Abs(base.Error.MeanJCT)
	return off > trusted && math.Abs(relative(r.MeanJCT, base.MeanJCT)) <= off
}

// severalNote says what is not known where several systems decided; "" if one did.
func severalNote(h *History) string {
	if len(h.Earlier) == 0 {
		return ""
	}
	return fmt.Sprintf("%s decided: no simulation is of what happened, so it is not known how far off they are. "+
		"Compare them with one another.", h.Recorded.System)
}

// errorNote says how far the simulation of the system that decided is from what happened; "" if it was not simulated.
func errorNote(rows []Row) string {
	for i := range rows {
		d := rows[i].Error
		if d == nil {
			continue
		}
		if worst := max(math.Abs(d.MeanJCT), math.Abs(d.P95JCT), math.Abs(d.Makespan)); worst < 0.0005 {
			return fmt.Sprintf("Simulated, %s itself comes out as it happened.", rows[i].System)
		}
		text := fmt.Sprintf("The simulation of %s itself is off by %+.1f%% in mean JCT, %+.1f%% in p95 JCT, "+
			"%+.1f%% in makespan; by job, %.1f%% (median). The column change is from that simulation, not from "+
			"what happened.", rows[i].System, 100*d.MeanJCT, 100*d.P95JCT, 100*d.Makespan, 100*d.PerJob)
		if off := math.Abs(d.MeanJCT); off > trusted {
			text += fmt.Sprintf(" That is much: do not trust a difference in mean JCT of less than %.0f%% (marked ?).",
				100*off)
		}
		return text
	}
	return ""
}

// few is below how many jobs it is chance which system comes out best. Ours.
const few = 30

// bestNote says which system would have had the least mean JCT, and what that rests on.
func bestNote(h *History, rows []Row) string {
	if h.Ended < few {
		return fmt.Sprintf("Only %s ended: too few to prefer one system to another.", term.Counted(h.Ended, "job"))
	}
	base, best := -1, -1
	for i := range rows {
		switch {
		case rows[i].Err != nil || rows[i].Recorded:
			continue
		case rows[i].Error != nil:
			base = i
		}
		if best < 0 || rows[i].MeanJCT < rows[best].MeanJCT {
			best = i
		}
	}
	if base < 0 || best == base {
		return ""
	}
	b := &rows[best]
	text := fmt.Sprintf("Least mean JCT: %s, %s against %s simulated, with %s.", b.System,
		term.Change(b.MeanJCT, rows[base].MeanJCT), rows[base].System,
		term.Counted(int(b.Preemptions), "preemption"))
	var reported []string
	for i := range rows {
		if info, err := system.Named(rows[i].System); err == nil && !rows[i].Recorded &&
			strings.Contains(info.Assumes, "work of each job") {
			reported = append(reported, rows[i].System)
		}
	}
	slices.Sort(reported)
	if reported = slices.Compact(reported); len(reported) > 0 {
		text += fmt.Sprintf(" It knew how long jobs would take, as no one does: %s.", strings.Join(reported, ", "))
	}
	return text
}

// countNote says which jobs are counted.
func countNote(h *History) string {
	text := term.Counted(h.Ended, "job") + " ended and are counted"
	if h.Ended == 1 {
		text = "1 job ended and is counted"
	}
	if h.Censored > 0 {
		text += fmt.Sprintf("; %d had not ended, simulated as far as they came, not counted", h.Censored)
	}
	if h.NeverRan > 0 {
		text += fmt.Sprintf("; %d never ran, and are left out", h.NeverRan)
	}
	if h.Changed > 0 {
		text += fmt.Sprintf("; %d that their users changed are simulated from the start as they were wanted last",
			h.Changed)
	}
	return text + "."
}

// costNote says what was measured and is simulated so; "" if nothing was.
func costNote(m *Overheads) string {
	var costs []string
	for _, c := range []struct {
		what string
		sec  float64
	}{{"a start", m.Start.Seconds()}, {"a stop", m.Stop.Seconds()}, {"a restart", m.Restart.Seconds()}} {
		if c.sec > 0 {
			costs = append(costs, c.what+" "+term.ShortTime(c.sec))
		}
	}
	if len(costs) == 0 {
		return ""
	}
	return "Measured in the record and simulated so: " + strings.Join(costs, ", ") + "."
}
