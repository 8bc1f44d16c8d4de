package jobs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
)

// top is what the screen of `trainyard top` shows. It asks no one: answers come as messages, requests go out by do.
type top struct {
	width, height int
	plain         bool // no colours

	seen   board
	now    time.Time
	lost   error          // why nothing newer than seen is known
	names  map[int]string // of the jobs in seen
	before map[int]string // of those of the look before: the end of a job may be reported after a look without it
	ticker []string       // what happened, the latest last

	chosen int    // number of the job that keys are about; -1 = none
	filter string // what a job must have in its name, user or state
	typing bool   // the filter
	asking bool   // whether to cancel the chosen job
	title  string
	page   []string // instead of the lists: why, logs, help; nil = none
	note   string   // what became of the last request

	// do has a request about a job carried out: cancel, pause, resume, why or logs. Its answer is a message, noted or
	// paged.
	do func(wanted string, job int) tea.Cmd
}

// board is one look at a manager.
type board struct {
	nodes api.Nodes
	jobs  api.Jobs // those that are not done
	at    time.Time
}

// Messages in addition to those of keys and sizes.
type (
	lost     struct{ err error } // the manager does not answer
	happens  happened            // an event
	noted    string              // what became of a request
	pageText struct{ title, text string }
)

// keptEvents is how many of the latest events are kept; no screen shows more.
const keptEvents = 50

func newTop(do func(string, int) tea.Cmd) *top {
	return &top{width: 80, height: 24, chosen: -1, do: do}
}

// Init has nothing done before the first message.
func (t *top) Init() tea.Cmd { return nil }

// View shows the screen, in place of what the terminal had.
func (t *top) View() tea.View {
	v := tea.NewView(t.screen())
	v.AltScreen = true
	return v
}

// Update folds one message.
func (t *top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = max(m.Width, 20), max(m.Height, 8)
	case board:
		t.look(m)
	case lost:
		t.lost = m.err
	case happens:
		t.tick((*happened)(&m))
	case noted:
		t.note = string(m)
	case pageText:
		t.title, t.page = m.title, strings.Split(strings.TrimRight(api.Printable(m.text), "\n"), "\n")
	case tea.KeyPressMsg:
		return t, t.press(m)
	}
	return t, nil
}

// look takes a newer look. A chosen job that is gone gives way to the first.
func (t *top) look(b board) {
	t.seen, t.now, t.lost = b, b.at, nil
	t.before, t.names = t.names, make(map[int]string, len(b.jobs.Jobs))
	for i := range b.jobs.Jobs {
		t.names[b.jobs.Jobs[i].ID] = b.jobs.Jobs[i].Name
	}
	t.choose(0)
}

// name is that of a job seen lately, "" if none was.
func (t *top) name(id int) string { return cmp.Or(t.names[id], t.before[id]) }

// tick adds an event to the ticker, if it means something to users.
func (t *top) tick(h *happened) {
	text := happenedText(h)
	if text == "" {
		return
	}
	line := t.now.Format("15:04:05") + " " + client.JobTitle(&api.Job{ID: h.Job, Name: t.name(h.Job)}) + ": " + text
	t.ticker = append(t.ticker[max(len(t.ticker)-keptEvents+1, 0):], line)
}

// standing is the order of jobs on the screen: those that hold GPUs, those that wait, those that do not want to.
var standing = []string{"running", "starting", "stopping", "waiting", "held", "done"}

// listed are the jobs that fit the filter, by standing and number.
func (t *top) listed() []*api.Job {
	var jobs []*api.Job
	for i := range t.seen.jobs.Jobs {
		j := &t.seen.jobs.Jobs[i]
		if strings.Contains(strings.Join([]string{strconv.Itoa(j.ID), j.Name, j.User, j.State}, "\n"), t.filter) {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(a, b *api.Job) int {
		return slices.Index(standing,
			a.State) - slices.Index(standing, b.State)
	})
	return jobs
}

// choose moves the choice by some jobs, as far as there are any.
func (t *top) choose(by int) {
	jobs := t.listed()
	if len(jobs) == 0 {
		t.chosen = -1
		return
	}
	at := max(slices.IndexFunc(jobs, func(j *api.Job) bool { return j.ID == t.chosen }), 0)
	t.chosen = jobs[min(max(at+by, 0), len(jobs)-1)].ID
}

// press does what a key says: the answer to a question first, then what is typed, then the rest.
func (t *top) press(k tea.KeyPressMsg) tea.Cmd {
	key := k.String()
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case t.asking:
		t.asking = false
		if key == "y" {
			return t.do("cancel", t.chosen)
		}
		return nil
	case t.typing:
		t.write(key, k.Text)
		return nil
	}
	t.note = ""
	switch key {
	case "q":
		return tea.Quit
	case "esc":
		if t.page == nil {
			t.filter = ""
			t.choose(0)
		}
		t.page = nil
	case "?":
		t.title, t.page = "help", strings.Split(topHelp, "\n")
	}
	if t.page == nil {
		return t.act(key)
	}
	return nil
}

// act does what a key says on the lists.
func (t *top) act(key string) tea.Cmd {
	switch key {
	case "up":
		t.choose(-1)
	case "down":
		t.choose(1)
	case "pgup":
		t.choose(-t.height / 2)
	case "pgdown":
		t.choose(t.height / 2)
	case "/":
		t.typing, t.filter = true, ""
	}
	if t.chosen < 0 {
		return nil
	}
	switch key {
	case "k":
		t.asking = true
	case "p":
		if t.stateOf(t.chosen) == "held" {
			return t.do("resume", t.chosen)
		}
		return t.do("pause", t.chosen)
	case "w":
		return t.do("why", t.chosen)
	case "l":
		return t.do("logs", t.chosen)
	}
	return nil
}

// stateOf is the state of a job that was seen.
func (t *top) stateOf(id int) string {
	for i := range t.seen.jobs.Jobs {
		if t.seen.jobs.Jobs[i].ID == id {
			return t.seen.jobs.Jobs[i].State
		}
	}
	return ""
}

// write types into the filter.
func (t *top) write(key, text string) {
	switch key {
	case "enter":
		t.typing = false
	case "esc":
		t.typing, t.filter = false, ""
	case "backspace":
		if r := []rune(t.filter); len(r) > 0 {
			t.filter = string(r[:len(r)-1])
		}
	default:
		t.filter += text
	}
	t.choose(0)
}

const topHelp = `
  up, down     choose a job; page up, page down: by half a screen
  k            cancel it, after a question: SIGTERM, its grace, SIGKILL
  p            pause it: its GPUs go to others; once more resumes it
  w            why it stands as it does
  l            the end of what it wrote
  /            only jobs with some text in number, name, user or state
  Esc          back; all jobs again
  q, Ctrl-C    leave; jobs go on

  Above stand the GPUs: each job has a colour, on its GPUs and in the list.
  What is red is given to no job; the text says why, and trainyard doctor
  what to do.`
