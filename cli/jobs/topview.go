package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// jobColours distinguish jobs, of the 256 of a terminal; job N has the one at N modulo their number. They are near the
// palette of Okabe and Ito (2008), which those who confuse red and green distinguish as well.
var jobColours = []int{214, 75, 35, 227, 69, 202, 175}

// colours of what stands out.
const (
	bad    = 203
	faint  = 245
	noHint = 0 // as the terminal writes
)

// cell is a piece of a row.
type cell struct {
	text   string
	width  int // columns; 0 = what is left of the row
	right  bool
	colour int
}

// row sets cells next to each other, a space between them, in exactly width columns at most.
func (t *top) row(width int, cells ...cell) string {
	var b strings.Builder
	used := 0
	for i, c := range cells {
		if i > 0 {
			b.WriteByte(' ')
			used++
		}
		room := width - used
		if c.width > 0 {
			room = min(room, c.width)
		}
		if room <= 0 {
			break
		}
		text := ansi.Truncate(c.text, room, "…")
		pad := strings.Repeat(" ", max(min(c.width, room)-ansi.StringWidth(text), 0))
		used += ansi.StringWidth(text) + len(pad)
		if c.right {
			text, pad = pad+text, ""
		}
		b.WriteString(t.paint(text, c.colour) + pad)
	}
	return strings.TrimRight(b.String(), " ")
}

// paint colours text, if that is wanted.
func (t *top) paint(text string, colour int) string {
	if t.plain || colour == noHint || text == "" {
		return text
	}
	return fmt.Sprintf("\x1b[38;5;%dm%s\x1b[m", colour, text)
}

func jobColour(id int) int { return jobColours[id%len(jobColours)] }

// screen is all that is shown: height lines of width columns at most.
func (t *top) screen() string {
	lines := []string{t.head()}
	body := t.height - 2
	if t.page != nil {
		lines = append(lines, t.pageLines(body)...)
	} else {
		lines = append(lines, t.lists(body)...)
	}
	for len(lines) < t.height-1 {
		lines = append(lines, "")
	}
	return strings.Join(append(lines[:t.height-1], t.foot()), "\n")
}

// lists shares the body among GPUs (a third, or as much as eight take, but no more than half), events (an eighth, 3 to
// 8 lines) and jobs, which get what the others leave.
func (t *top) lists(body int) []string {
	lines := t.gpuLines(max(min(max(body/3, 9), body/2), 3))
	events := min(max(body/8, 3), 8)
	lines = append(lines, t.jobLines(max(body-len(lines)-events-1, 2))...)
	for len(lines) < body-events-1 {
		lines = append(lines, "")
	}
	lines = append(lines, t.paint("events", faint))
	for _, e := range t.ticker[max(len(t.ticker)-events, 0):] {
		lines = append(lines, t.row(t.width, cell{text: e}))
	}
	return lines
}

// head says who answers and how it stands.
func (t *top) head() string {
	if t.lost != nil {
		return t.row(t.width, cell{text: "trainyard top: " + term.OneLine(t.lost.Error()) + "; trying again",
			colour: bad})
	}
	busy, state := 0, make(map[string]int)
	for i := range t.seen.nodes.GPUs {
		if len(t.seen.nodes.GPUs[i].Jobs) > 0 {
			busy++
		}
	}
	for i := range t.seen.jobs.Jobs {
		state[t.seen.jobs.Jobs[i].State]++
	}
	text := fmt.Sprintf("%s: %d of %s busy; jobs: %d on, %d waiting", t.seen.nodes.Node, busy,
		term.Counted(len(t.seen.nodes.GPUs), t.seen.nodes.Unit),
		state["starting"]+state["running"]+state["stopping"], state["waiting"])
	if n := state["held"]; n > 0 {
		text += fmt.Sprintf(", %d held", n)
	}
	if t.seen.nodes.Drained {
		text += "; drained"
	}
	if t.seen.jobs.System != "" {
		text += "; under " + t.seen.jobs.System
	}
	clock := t.now.Format("15:04:05")
	return t.row(t.width, cell{text: text, width: t.width - len(clock) - 1}, cell{text: clock})
}

// gpuLines are the rows of GPUs in at most room lines; what does not fit is counted.
func (t *top) gpuLines(room int) []string {
	gpus := t.seen.nodes.GPUs
	lines := []string{t.paint(t.row(t.width, gpuCells(" "+t.seen.nodes.Unit, "state", "job", "use", "memory", "power",
		"remarks", noHint)...), faint)}
	shown := gpus
	if len(gpus) > room-1 {
		shown = gpus[:room-2]
	}
	for i := range shown {
		lines = append(lines, t.gpuLine(i, &shown[i]))
	}
	if n := len(gpus) - len(shown); n > 0 {
		lines = append(lines, t.row(t.width, cell{text: fmt.Sprintf("and %d more, see `trainyard nodes`", n),
			colour: faint}))
	}
	return lines
}

// nameWidth has room for the number of a GPU and the start of its name.
const nameWidth = 14

func gpuCells(name, state, job, use, memory, power, remarks string, colour int) []cell {
	return []cell{{text: name, width: nameWidth}, {text: state, width: 11}, {text: job, width: 16, colour: colour},
		{text: use, width: 15, colour: colour},
		{text: memory, width: 14, right: true}, {text: power, width: 5, right: true}, {text: remarks}}
}

// gpuLine is the row of a GPU. What is wrong with one takes the place of what it does.
func (t *top) gpuLine(index int, g *api.GPU) string {
	name, words, colour := fmt.Sprintf("%2d", index), make([]string, len(g.Jobs)), noHint
	if short := gpuNames([]string{g.Name}); short != fmt.Sprint(index) {
		name += " " + short
	}
	for i, id := range g.Jobs {
		words[i] = fmt.Sprintf("%d %s", id, t.name(id))
		colour = jobColour(id)
	}
	job := strings.Join(words, ", ")
	if len(g.Jobs) > 1 {
		job = numbers(g.Jobs)
	}
	if why := api.Printable(g.Why); why != "" {
		return t.row(t.width, cell{text: name, width: nameWidth}, cell{text: gpuState(g), width: 11, colour: bad},
			cell{text: job, width: 16, colour: colour}, cell{text: why, colour: bad})
	}
	return t.row(t.width, gpuCells(name, gpuState(g), job, bar(g), memoryText(g), wattsText(g), client.Remarks(g),
		colour)...)
}

// places lists GPUs by their numbers on the screen.
func (t *top) places(names []string) string {
	numbers := make([]string, len(names))
	for i, name := range names {
		numbers[i] = fmt.Sprint(slices.IndexFunc(t.seen.nodes.GPUs, func(g api.GPU) bool { return g.Name == name }))
	}
	return cmp.Or(strings.Join(numbers, ","), "-")
}

// bar draws the use of a GPU, a block per tenth.
func bar(g *api.GPU) string {
	if g.OfMB == 0 {
		return "-"
	}
	full := int(g.Use*10 + 0.5)
	return fmt.Sprintf("%s%s %3.0f%%", strings.Repeat("█", full), strings.Repeat("·", 10-full), 100*g.Use)
}

// jobLines are the jobs that fit the filter in at most room lines, scrolled so that the chosen one is seen.
func (t *top) jobLines(room int) []string {
	jobs := t.listed()
	lines := []string{t.paint(t.row(t.width, t.jobCells(" ", "job", "name", "state", unitHead(t.seen.nodes.Unit), "on",
		"waited", "ran", "step", "why", noHint)...), faint)}
	room--
	at := max(slices.IndexFunc(jobs, func(j *api.Job) bool { return j.ID == t.chosen }), 0)
	first := max(min(at-room/2, len(jobs)-room), 0)
	for _, j := range jobs[first:min(first+room, len(jobs))] {
		mark, width := " ", briefWidth(j)
		if j.ID == t.chosen {
			mark = ">"
		}
		if t.width >= wideTop {
			width = widthText(j)
		}
		lines = append(lines, t.row(t.width, t.jobCells(mark, fmt.Sprint(j.ID), j.Name, jobState(j), width,
			t.places(j.GPUs), term.ShortTime(j.QueueSec),
			term.ShortTime(j.RunSec), stepText(j), api.Printable(j.Why), jobColour(j.ID))...))
	}
	switch {
	case len(jobs) > 0:
	case t.filter != "":
		lines = append(lines, "no job that is not done has "+t.filter+" in its name, user or state; Esc shows all")
	default:
		lines = append(lines, "no jobs; submit one by `trainyard submit -- COMMAND`")
	}
	return lines
}

// wideTop is the width from which the steps of jobs are shown.
const wideTop = 100

func (t *top) jobCells(mark, id, name, state, gpus, on, waited, ran, step, why string, colour int) []cell {
	held := 5
	if t.width >= wideTop {
		held = 9
	}
	cells := []cell{{text: mark, width: 1}, {text: id, width: 5, right: true, colour: colour},
		{text: name, width: 16, colour: colour}, {text: state, width: 8},
		{text: gpus, width: held, right: true}, {text: on, width: 8}, {text: waited, width: 6, right: true},
		{text: ran, width: 6, right: true}}
	if t.width >= wideTop {
		cells = append(cells, cell{text: step, width: 13, right: true})
	}
	return append(cells, cell{text: why})
}

// pageLines are the lines of the page that was asked for, its last if it has more than room.
func (t *top) pageLines(room int) []string {
	lines := []string{t.paint(t.row(t.width, cell{text: t.title}), faint)}
	for _, line := range t.page[max(len(t.page)-room+1, 0):] {
		lines = append(lines, ansi.Truncate(line, t.width, "…"))
	}
	return lines
}

// foot is a question, what is typed, what happened to the last request, or the keys.
func (t *top) foot() string {
	text, colour := "↑↓ choose  k cancel  p pause/resume  w why  l logs  / filter  ? help  q quit", faint
	switch {
	case t.asking:
		text, colour = fmt.Sprintf("cancel job %d %s? y/n", t.chosen, t.name(t.chosen)), bad
	case t.typing:
		text, colour = "/"+t.filter+"▏ Enter keeps it, Esc shows all", noHint
	case t.page != nil:
		text = "Esc goes back  q quit"
	case t.note != "":
		text, colour = t.note, noHint
	case t.filter != "":
		text = fmt.Sprintf("only %q, Esc shows all  ", t.filter) + text
	}
	return t.row(t.width, cell{text: text, colour: colour})
}
