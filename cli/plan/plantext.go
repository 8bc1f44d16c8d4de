package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
)

// text writes a plan on so many columns.
func (p *planned) text(width int) string {
	var b strings.Builder
	line := func(what, text string) { b.WriteString(term.Entry(what, text, width)) }
	line("workload", p.workload.String())
	line("method", p.methodName())
	line("budget", p.budgetLine())
	line("JCT", p.jctLine())
	if p.best.priced {
		line("price", p.priceLine())
	}
	if p.split != nil {
		line("reserve", p.split.line())
	}
	if p.verified != nil {
		line("verified", p.verifiedLine())
	}
	b.WriteString("\n" + p.widths(width))
	b.WriteString("\n" + p.frontierTable(width) + "\n" + p.plot(width))
	return b.String()
}

// methodName says how widths were found.
func (p *planned) methodName() string {
	if p.continuous {
		return p.method + ", fractions of GPUs"
	}
	return p.method
}

func (p *planned) budgetLine() string {
	text := fmt.Sprintf("%s %s on average", short(p.budget), p.workload.unit())
	if left := p.budget - p.best.usage; left > 1e-4*p.budget {
		text += fmt.Sprintf(", of which %s are used", short(p.best.usage))
	}
	return text + fmt.Sprintf("; the least is %s", atLeast(p.least))
}

func (p *planned) jctLine() string {
	text := term.ShortTime(3600*p.best.jct) + " on average"
	if p.workload.weighted() {
		text += "; by weight " + term.ShortTime(3600*p.best.value)
	}
	return text
}

func (p *planned) priceLine() string {
	if p.best.price == 0 {
		return "0: more would buy nothing"
	}
	one := "one more GPU on average"
	if p.workload.money {
		one = "one more per hour"
	}
	per := "job"
	if p.workload.weighted() {
		per = "job, by weight"
	}
	return fmt.Sprintf("%s saves %s per %s, and %s of waiting an hour; a job that waits is worth %s %s", one,
		term.ShortTime(p.saves()), per, term.ShortTime(3600*p.best.price),
		short(1/p.best.price), p.workload.unit())
}

func (r *reservation) line() string {
	return fmt.Sprintf("%s, and rent %s more on average; more than the reserved are held %s of the time, and %s of "+
		"them idle: %s per hour rather than %s with all rented",
		term.Counted(r.split.Reserved, "GPU"), short(r.split.Rented), term.Percent(r.split.Above), short(r.split.Idle),
		short(r.cost), short(r.rent))
}

// short prints a number in about four digits.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	return strconv.FormatFloat(y, 'f', -1, 64)
}

// widths returns the table of widths. Epochs in a row that run alike stand on one line.
func (p *planned) widths(width int) string {
	t := &term.Table{Left: 1}
	head := []string{"class", "epochs", "GPUs", "jobs"}
	if len(p.workload.types) > 1 {
		head, t.Left = []string{"class", "on", "epochs", "GPUs", "jobs"}, 2
	}
	t.Add(head...)
	capped := false
	for _, run := range runsOf(p.best.rows) {
		for _, r := range run.rows {
			row := []string{r.class, run.epochs(), gpusOf(&r), term.Percent(r.share)}
			if len(p.workload.types) > 1 {
				row = slices.Insert(row, 1, r.gpu)
			}
			t.Add(row...)
			capped = capped || r.capped
		}
	}
	t.Cut(0, width)
	text := t.Text(width)
	if capped {
		text += "* as many as it may have; it would take more\n"
	}
	return text
}

func gpusOf(r *widthRow) string {
	if r.capped {
		return short(r.gpus) + "*"
	}
	return short(r.gpus)
}

// run is consecutive epochs of a class that run alike.
type epochRun struct {
	from, to int
	rows     []widthRow // of the first of them
}

func (r *epochRun) epochs() string {
	if r.from == r.to {
		return strconv.Itoa(r.from)
	}
	return fmt.Sprintf("%d-%d", r.from, r.to)
}

// runsOf puts together rows of epochs that run alike.
func runsOf(rows []widthRow) []epochRun {
	var runs []epochRun
	for i := 0; i < len(rows); {
		n := i + 1
		for n < len(rows) && rows[n].class == rows[i].class && rows[n].epoch == rows[i].epoch {
			n++
		}
		if last := len(runs) - 1; last >= 0 && alike(runs[last].rows, rows[i:n]) {
			runs[last].to = rows[i].epoch
		} else {
			runs = append(runs, epochRun{rows[i].epoch, rows[i].epoch, rows[i:n]})
		}
		i = n
	}
	return runs
}

// alike reports whether two epochs of one class run in the same way.
func alike(a, b []widthRow) bool {
	return slices.EqualFunc(a, b, func(x, y widthRow) bool {
		x.epoch = y.epoch
		return x == y
	})
}

// frontierTable writes every third corner.
func (p *planned) frontierTable(width int) string {
	t := &term.Table{}
	budgets, times, weighted := []string{"budget"}, []string{"JCT"}, []string{"by weight"}
	for i, o := range p.frontier {
		if i%3 == 0 || i == len(p.frontier)-1 {
			budgets, times = append(budgets, short(o.budget)), append(times, term.ShortTime(3600*o.jct))
			weighted = append(weighted, term.ShortTime(3600*o.value))
		}
	}
	t.Add(budgets...)
	t.Add(times...)
	if p.workload.weighted() {
		t.Add(weighted...)
	}
	return t.Text(width)
}

// Rows and columns of the plot.
const (
	plotRows    = 12
	plotColumns = 60
)

// plot draws mean time against budget, the time on a logarithmic scale: o is the plan.
func (p *planned) plot(width int) string {
	first, last := p.frontier[0], p.frontier[len(p.frontier)-1]
	if first.budget == last.budget || first.jct == last.jct {
		return ""
	}
	columns := min(plotColumns, width-10)
	low, high := math.Log(min(last.jct, p.best.jct)), math.Log(max(first.jct, p.best.jct))
	var grid [plotRows][]byte
	for i := range grid {
		grid[i] = []byte(strings.Repeat(" ", columns))
	}
	put := func(budget, jct float64, mark byte) {
		x := (budget - first.budget) / (last.budget - first.budget) * float64(columns-1)
		y := (high - math.Log(jct)) / (high - low) * (plotRows - 1)
		if x >= 0 && x <= float64(columns-1)+0.5 && y >= 0 && y <= plotRows-0.5 {
			grid[int(math.Round(y))][min(int(math.Round(x)), columns-1)] = mark
		}
	}
	for _, o := range p.frontier {
		put(o.budget, o.jct, '.')
	}
	put(p.best.budget, p.best.jct, 'o')
	var b strings.Builder
	for i := range grid {
		label := ""
		if i%(plotRows-1) == 0 || i == plotRows/2 {
			label = term.ShortTime(3600 * math.Exp(high-(high-low)*float64(i)/(plotRows-1)))
		}
		fmt.Fprintf(&b, "%7s |%s\n", label, strings.TrimRight(string(grid[i]), " "))
	}
	left, right := short(first.budget), short(last.budget)+" "+p.workload.unit()
	fmt.Fprintf(&b, "%7s +%s\n%8s%s%*s\n", "", strings.Repeat("-", columns), "", left, columns-len(left)+1, right)
	return b.String()
}
