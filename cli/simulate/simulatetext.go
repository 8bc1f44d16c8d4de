package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// text returns what simulate prints: what was run, the table, and what to know before reading it.
func (c *comparison) text(width int) string {
	var b strings.Builder
	c.header(&b, width)
	if c.seeds > 0 {
		b.WriteString("\n" + c.seedsTable(width))
	} else {
		b.WriteString("\n" + c.table(width))
	}
	if notes := c.notes(); len(notes) > 0 {
		b.WriteString("\n")
		for _, n := range notes {
			b.WriteString(term.Wrap(n, width, 2) + "\n")
		}
	}
	return b.String()
}

// header says what was run.
func (c *comparison) header(b *strings.Builder, width int) {
	line := func(what, text string) { b.WriteString(term.Entry(what, text, width)) }
	line("trace", c.shared.Trace.Path+": "+c.submitted())
	line("cluster", c.size())
	line("restart", c.restart())
	if c.shared.Preset != "" {
		line("preset", c.presetLine())
	}
	if c.shared.Round > 0 {
		line("round", sched.FormatSeconds(c.shared.Round)+" s")
	}
	if f := c.shared.Cluster.Failures; f.MTBF > 0 {
		line("failures", fmt.Sprintf("every %s per node on average, down for %s, seed %d",
			term.ShortTime(f.MTBF.Seconds()), term.ShortTime(f.Repair.Seconds()), f.Seed))
	}
}

// submitted says how many jobs came, and how fast.
func (c *comparison) submitted() string {
	load := "at once"
	if c.summary.Span > 0 {
		load = fmt.Sprintf("in %s, offered load %.3g", term.ShortTime(c.summary.Span.Seconds()),
			c.summary.OfferedLoad(c.shared.Cluster.MostGPUs()))
	}
	return term.Counted(c.summary.Jobs, "job") + " submitted " + load
}

// restart says what a restart costs, by system where that differs.
func (c *comparison) restart() string {
	const when = " at every start but a job's first"
	costs := make([]string, len(c.runs))
	same := true
	for i := range c.runs {
		costs[i] = c.restartOf(&c.runs[i])
		same = same && costs[i] == costs[0]
	}
	if !same {
		for i := range costs {
			costs[i] = c.runs[i].request.System + " " + costs[i]
		}
		return strings.Join(slices.Compact(costs), ", ")
	}
	if strings.HasSuffix(costs[0], " s") {
		return costs[0] + when
	}
	return costs[0]
}

func (c *comparison) restartOf(r *systemRun) string {
	cost, given := r.request.Settings["restart_overhead"]
	note := ""
	if p := simulate.PresetNamed(c.shared.Preset); p != nil {
		if !given {
			cost, given = p.Defaults(r.request.System)["restart_overhead"]
		}
		if note = p.RestartNote(r.request.System); note != "" {
			note = " (but " + note + ")"
		}
	}
	if !given {
		cost = system.RestartOverhead.Default
	}
	if x, err := strconv.ParseFloat(cost, 64); err == nil && x == 0 {
		return "free" + note
	}
	return cost + " s" + note
}

func (c *comparison) presetLine() string {
	return c.shared.Preset + ": " + simulate.PresetNamed(c.shared.Preset).Line
}

// table returns one row per system.
func (c *comparison) table(width int) string {
	t := &term.Table{}
	t.Add("", "", "avg", "", "median", "p95", "avg", "", "pre-", "")
	t.Add("system", "finished", "JCT", "", "JCT", "JCT", "queue", "makespan", "empted", "busy")
	compare := c.sameFinished()
	for i := range c.runs {
		r := &c.runs[i]
		better := ""
		if compare && i > 0 {
			better = term.Change(r.outcome.AvgJCT, c.runs[0].outcome.AvgJCT)
		}
		t.Add(resultRow(r, better)...)
	}
	return t.Text(width)
}

// mark stands behind the name of a system that a replica of a released simulator ran.
func (r *systemRun) mark() string {
	if r.replica() {
		return " " + replicaMark
	}
	return ""
}

// replicaMark marks what a replica of a released simulator computed, here and in docs/papers.
const replicaMark = "ʀ"

// replicaNote is the footnote of the mark; "" where no row has it.
func (c *comparison) replicaNote() string {
	i := slices.IndexFunc(c.runs, func(r systemRun) bool { return r.replica() })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s computed by a replica of the released simulator (%s), not by Trainyard's engine.",
		replicaMark,
		c.runs[i].outcome.Engine)
}

// knowsNotes says which systems went by what no one knows of real jobs before they end.
func (c *comparison) knowsNotes() (notes []string) {
	words := map[string]string{"sizes": "how much work jobs have left", "curves": "how fast jobs go by width"}
	for _, what := range []string{"sizes", "curves"} {
		var names []string
		for i := range c.runs {
			if slices.Contains(c.runs[i].outcome.Knows, what) {
				names = append(names, c.runs[i].request.System)
			}
		}
		if len(names) > 0 {
			notes = append(notes, fmt.Sprintf("Knows %s, %s, from an oracle: %s.", what, words[what],
				strings.Join(slices.Compact(names), ", ")))
		}
	}
	return notes
}

func resultRow(r *systemRun, better string) []string {
	o := &r.outcome.Result
	row := []string{o.System + r.mark(), strconv.Itoa(o.Finished), "-", better, "-", "-", "-", "-",
		strconv.FormatInt(o.Preemptions, 10), "-"}
	if o.Finished > 0 {
		row[2], row[4], row[5] = term.ShortTime(o.AvgJCT), term.ShortTime(o.P50JCT), term.ShortTime(o.P95JCT)
		row[6], row[7] = term.ShortTime(o.AvgQueue), term.ShortTime(o.Makespan)
	}
	row[9] = term.Percent(o.GPUBusy)
	return row
}

// sameFinished reports whether all systems finished the same jobs.
func (c *comparison) sameFinished() bool {
	first := finished(c.runs[0].outcome.PerJob)
	for i := range c.runs[1:] {
		other := finished(c.runs[i+1].outcome.PerJob)
		if len(other) != len(first) {
			return false
		}
		for name := range other {
			if !first[name] {
				return false
			}
		}
	}
	return true
}

// finished returns the names of the jobs that finished.
func finished(jobs []metrics.Job) map[string]bool {
	set := make(map[string]bool, len(jobs))
	for i := range jobs {
		if jobs[i].Outcome == sched.Finished {
			set[jobs[i].Name] = true
		}
	}
	return set
}

// notes says what the table does not: which jobs did not finish, whether averages can be compared, what nodes did and
// what they cost.
func (c *comparison) notes() []string {
	notes := c.failedNotes()
	if n := c.replicaNote(); n != "" {
		notes = append(notes, n)
	}
	notes = append(append(notes, c.knowsNotes()...), c.rentNotes()...)
	if c.seeds > 0 {
		return append(notes, c.seedsNotes()...)
	}
	notes = append(notes, c.outcomeNotes()...)
	if n := c.userNote(); n != "" {
		notes = append(notes, n)
	}
	if !c.sameFinished() {
		notes = append(notes, "The systems did not finish the same jobs: their times are not comparable, so none is "+
			"ranked.")
	}
	for i := range c.runs {
		r := &c.runs[i]
		if o := &r.outcome.Result; r.request.Fails() {
			notes = append(notes, fmt.Sprintf("%s: %s ended %s.", o.System,
				term.Counted(int(o.NodeFailures), "node failure"),
				term.Counted(int(o.AttemptsLost), "attempt")))
		}
	}
	return append(notes, c.costNotes()...)
}

// costNotes says what each system's run cost and how much energy it took, where that is known.
func (c *comparison) costNotes() []string {
	var notes []string
	for i := range c.runs {
		o := &c.runs[i].outcome.Result
		var parts []string
		if _, rents := c.runs[i].request.Rents(); rents {
			parts = append(parts, fmt.Sprintf("%.1f GPUs rented on average", o.AvgRentedGPUs))
		}
		if c.priced() {
			parts = append(parts, fmt.Sprintf("cost $%.2f", o.Cost))
		}
		if c.powered() {
			parts = append(parts, fmt.Sprintf("energy %.4g kWh", o.EnergyKWh))
		}
		if len(parts) > 0 && !c.runs[i].replica() {
			notes = append(notes, o.System+": "+strings.Join(parts, ", ")+".")
		}
	}
	return notes
}

// overBudget is the share beyond a budget up to which it counts as kept.
const overBudget = .05

// rentNotes says which budgets were not kept, and where no node failed since all are rented.
func (c *comparison) rentNotes() (notes []string) {
	for _, runs := range c.bySystem() {
		r := &runs[0]
		name := r.request.System
		if c.shared.Cluster.Failures.MTBF > 0 && !r.replica() && !r.request.Fails() {
			notes = append(notes, name+": rents its nodes, and rented nodes do not fail in simulations: failures of "+
				"the cluster file play no part.")
		}
		most, _ := r.request.Rents()
		rented := c.over(runs, func(r *systemRun) float64 { return r.outcome.AvgRentedGPUs }).Mean
		if most > 0 && rented > most*(1+overBudget) && !r.replica() {
			notes = append(notes, fmt.Sprintf("%s: %.1f GPUs were rented on average, more than its budget of %v: the "+
				"jobs take as much, or the trace is too short to make up for a peak.", name, rented, most))
		}
	}
	return notes
}

// outcomeNotes says which jobs did not finish, and under which systems.
func (c *comparison) outcomeNotes() []string {
	var notes []string
	who := make(map[string][]string)
	for i := range c.runs {
		for _, n := range c.runs[i].outcomes(c.shared.Cluster.MostGPUs()) {
			if who[n] == nil {
				notes = append(notes, n)
			}
			who[n] = append(who[n], c.runs[i].request.System)
		}
	}
	for i, n := range notes {
		if len(who[n]) < len(c.runs) {
			notes[i] = strings.Join(who[n], ", ") + ": " + n
		}
	}
	return notes
}

// outcomes says what became of jobs that did not finish on a cluster of so many GPUs.
func (r *systemRun) outcomes(gpus int) []string {
	count := make(map[string]int)
	wide, widest := 0, 0
	jobs, limit, over := r.outcome.PerJob, r.userLimit(), 0
	for i := range jobs {
		j := &jobs[i]
		s := term.Status(j)
		if int(j.GPUs) > gpus && j.Start == sched.None {
			wide, widest, s = wide+1, max(widest, int(j.GPUs)), "wide"
		} else if limit > 0 && int(j.GPUs) > limit && s == "never-started" {
			over, s = over+1, "over"
		}
		count[s]++
	}
	var notes []string
	if wide == 1 {
		notes = append(notes, fmt.Sprintf("1 job is wider than the cluster (%d > %d GPUs) and never started.", widest,
			gpus))
	} else if wide > 1 {
		notes = append(notes, fmt.Sprintf("%d jobs are wider than the cluster (%d > %d GPUs) and never started.", wide,
			widest, gpus))
	}
	if over > 0 {
		notes = append(notes, fmt.Sprintf("%s asked for more GPUs than user_limit %d and never started.",
			term.Counted(over, "job"), limit))
	}
	for _, f := range []struct{ status, one, more string }{
		{"never-started", "1 job never started.", "%d jobs never started."},
		{"unfinished", "1 job started but did not finish.", "%d jobs started but did not finish."},
		{"rejected", "1 job was refused for good.", "%d jobs were refused for good."},
		{"cancelled", "1 job was cancelled.", "%d jobs were cancelled."},
		{"failed", "1 job failed.", "%d jobs failed."},
	} {
		if n := count[f.status]; n == 1 {
			notes = append(notes, f.one)
		} else if n > 1 {
			notes = append(notes, fmt.Sprintf(f.more, n))
		}
	}
	return notes
}

// userLimit returns the GPUs that one user may hold; 0 = no limit.
func (r *systemRun) userLimit() int {
	n, _ := strconv.Atoi(strings.TrimSpace(r.request.Settings["user_limit"])) // it was checked before the run
	return n
}

// userNote says how user_limit is read where no job names its user; "" = not so.
func (c *comparison) userNote() string {
	limited := slices.ContainsFunc(c.runs, func(r systemRun) bool { return r.userLimit() > 0 })
	named := slices.ContainsFunc(c.shared.Trace.Jobs, func(j trace.Job) bool { return j.Spec.User != "" })
	if !limited || named {
		return ""
	}
	return "No job names its user: they count as one user, and user_limit is for all of them together."
}

// size says what the cluster consists of.
func (c *comparison) size() string {
	size := fmt.Sprintf("%s: %s, %s", c.shared.Cluster.Name, term.Counted(len(c.shared.Cluster.Nodes), "node"),
		term.Counted(c.shared.Cluster.GPUs(), "GPU"))
	if len(c.shared.Cluster.Pools) > 0 {
		size += fmt.Sprintf(", up to %d with rented nodes", c.shared.Cluster.MostGPUs())
	}
	return size
}
