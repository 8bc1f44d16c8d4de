package jobs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/trainyard/trainyard/api"
)

// busyBoard is a machine of eight GPUs on which much happens.
func busyBoard() board {
	b := board{at: time.Date(2026, 3, 1, 12, 34, 56, 0, time.UTC)}
	b.nodes = api.Nodes{Node: "lab-1", Unit: "GPU"}
	for g := range 8 {
		b.nodes.GPUs = append(b.nodes.GPUs, api.GPU{Name: fmt.Sprintf("GPU-%08x-aaaa-bbbb", g*0x1234567),
			State: "in-use", OfMB: 80 << 10, Watts: 70})
	}
	for g, id := range []int{3, 3, 3, 3, 5} {
		gpu := &b.nodes.GPUs[g]
		gpu.Jobs, gpu.Use, gpu.MemoryMB, gpu.Watts = []int{id}, 0.97, 61.4*1024, 655
	}
	b.nodes.GPUs[4].Jobs, b.nodes.GPUs[4].Use = []int{5, 6}, 0.455
	gpu := &b.nodes.GPUs[5]
	gpu.State, gpu.Why = "foreign", "process 4711 (\x1b]52;c;aGk=\apython) of ann holds 8.2 GiB; end it, or drain "+
		"the GPU"
	b.nodes.GPUs[6].HeldIdle, b.nodes.GPUs[6].By, b.nodes.GPUs[6].MemoryMB = true, "jupyter (812)", 8<<10
	job := func(id int, name, state string, want int, gpus ...string) {
		b.jobs.Jobs = append(b.jobs.Jobs, api.Job{ID: id, Name: name, User: "ann", State: state, Min: want, Want: want,
			Max: want, GPUs: gpus, QueueSec: 61, RunSec: 3725})
	}
	b.jobs.System = "tiresias-las"
	job(1, "waits", "waiting", 2)
	b.jobs.Jobs[0].Why = "needs 2 GPUs, 1 is free; job 3 holds 4 and was here first, as long as it has used less " +
		"than an hour of GPU time"
	job(2, "paused", "held", 1)
	job(3, "resnet50", "running", 4, b.nodes.GPUs[0].Name, b.nodes.GPUs[1].Name, b.nodes.GPUs[2].Name,
		b.nodes.GPUs[3].Name)
	job(5, "bert-with-a-name-that-is-rather-long", "running", 1, b.nodes.GPUs[4].Name)
	job(6, "gpt", "stopping", 1, b.nodes.GPUs[4].Name)
	for id := 10; id < 40; id++ {
		job(id, fmt.Sprintf("sweep-%d", id), "waiting", 1)
	}
	b.jobs.Jobs[2].Step, b.jobs.Jobs[2].Total = 12000, 90000
	return b
}

// requested is a screen that notes what is requested of it.
func requested(b board) (*top, *[]string) {
	requests := new([]string)
	t := newTop(func(wanted string, job int) tea.Cmd {
		*requests = append(*requests, fmt.Sprint(wanted, " ", job))
		return nil
	})
	t.plain = true
	t.look(b)
	return t, requests
}

// types sends keys.
func types(t *top, keys ...string) {
	special := map[string]rune{"esc": tea.KeyEscape, "enter": tea.KeyEnter, "up": tea.KeyUp, "down": tea.KeyDown,
		"backspace": tea.KeyBackspace,
		"pgup":      tea.KeyPgUp, "pgdown": tea.KeyPgDown}
	for _, key := range keys {
		if code, ok := special[key]; ok {
			t.Update(tea.KeyPressMsg{Code: code})
			continue
		}
		t.Update(tea.KeyPressMsg{Code: []rune(key)[0], Text: key})
	}
}

// Ensure that the screen shows what counts, at the smallest size and at a large one, and never more than fits; see
// testdata/top.
func TestTopScreen(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
		b             board
	}{
		{"80x24", 80, 24, nil, busyBoard()},
		{"200x50", 200, 50, []string{"down", "down"}, busyBoard()},
		{"filter", 80, 24, []string{"/", "w", "a", "i", "t", "s"}, busyBoard()},
		{"cancel", 80, 24, []string{"down", "k"}, busyBoard()},
		{"scrolled", 80, 24, []string{"pgdown", "pgdown"}, busyBoard()},
		{"help", 80, 24, []string{"?"}, busyBoard()},
		{"nothing", 80, 24, nil, board{nodes: api.Nodes{Node: "lab-1", Unit: "slot",
			GPUs: []api.GPU{{Name: "slot-0", State: "in-use"}}}}},
		{"tiny", 20, 8, nil, busyBoard()},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := requested(c.b)
			m.Update(tea.WindowSizeMsg{Width: c.width, Height: c.height})
			for i := range 12 {
				m.Update(happens{Event: "started", Job: 10 + i, Attempt: 1})
			}
			m.Update(happens{Event: "ended", Job: 3, Attempt: 2, Outcome: "failed", Code: 9})
			m.Update(happens{Event: "progressed", Job: 3})
			types(m, c.keys...)
			got := m.View().Content
			lines := strings.Split(got, "\n")
			if len(lines) != c.height {
				t.Errorf("%d lines, want %d", len(lines), c.height)
			}
			for _, line := range lines {
				if w := ansi.StringWidth(line); w > c.width {
					t.Errorf("%d columns: %q", w, line)
				}
			}
			if strings.ContainsAny(got, "\x1b\a\r") {
				t.Errorf("control characters without colours: %q", got)
			}
			m.plain = false
			if painted := m.View().Content; ansi.Strip(painted) != got || painted == got {
				t.Errorf("colours change the text, or there are none:\n%s", painted)
			}
			golden(t, filepath.Join("testdata", "top", c.name+".txt"), got+"\n")
		})
	}
}

// golden compares text with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs, see -rewrite:\n%s", path, got)
	}
}

// Ensure that keys do what the help says, about the chosen job alone, and that cancelling takes a yes.
func TestTopKeys(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want []string
	}{
		{[]string{"k", "y"}, []string{"cancel 3"}},
		{[]string{"k", "n", "y", "k", "esc", "k", "enter"}, nil},
		{[]string{"down", "k", "q", "p"}, []string{"pause 5"}},
		{[]string{"down", "down", "down", "w", "l"}, []string{"why 1", "logs 1"}},
		{[]string{"up", "w"}, []string{"why 3"}},
		{[]string{"/", "p", "a", "u", "x", "backspace", "s", "enter", "p"}, []string{"resume 2"}},
		{[]string{"/", "s", "w", "e", "e", "p", "enter", "w", "esc", "w"}, []string{"why 10", "why 10"}},
		{[]string{"/", "n", "o", "b", "o", "d", "y", "enter", "w", "k", "y"}, nil},
		{[]string{"/", "k", "y", "p", "enter"}, nil},
		{[]string{"?", "k", "y", "p", "esc", "p"}, []string{"pause 3"}},
	} {
		m, requests := requested(busyBoard())
		types(m, c.keys...)
		if !slices.Equal(*requests, c.want) {
			t.Errorf("%q: %q, want %q", c.keys, *requests, c.want)
		}
	}
}

// Ensure that q and Ctrl-C leave wherever they are no text, and that nothing else does.
func TestTopQuit(t *testing.T) {
	quits := func(cmd tea.Cmd) bool {
		if cmd == nil {
			return false
		}
		_, ok := cmd().(tea.QuitMsg)
		return ok
	}
	q, interrupt := tea.KeyPressMsg{Code: 'q', Text: "q"}, tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	for _, keys := range [][]string{nil, {"?"}, {"/"}, {"k"}} {
		m, _ := requested(busyBoard())
		types(m, keys...)
		if _, cmd := m.Update(interrupt); !quits(cmd) {
			t.Errorf("%q: Ctrl-C does not leave", keys)
		}
		typed := len(keys) > 0 && keys[0] != "?"
		if _, cmd := m.Update(q); quits(cmd) == typed {
			t.Errorf("%q: q leaves: %t", keys, !typed)
		}
	}
}

// Ensure that a choice holds when jobs come, change their place and go, and that a manager that does not answer is
// said.
func TestTopNews(t *testing.T) {
	b := busyBoard()
	m, requests := requested(b)
	types(m, "down", "w")
	b = busyBoard()
	b.jobs.Jobs[3].State = "waiting" // 5, now behind 3 and 6
	m.Update(b)
	types(m, "w")
	b = busyBoard()
	b.jobs.Jobs = b.jobs.Jobs[:3]
	m.Update(b)
	types(m, "w")
	b.jobs.Jobs = nil
	m.Update(b)
	types(m, "w", "p")
	if want := []string{"why 5", "why 5", "why 3"}; !slices.Equal(*requests, want) {
		t.Errorf("%q, want %q", *requests, want)
	}
	m.Update(lost{errors.New("lab.state: no trainyard runs there")})
	wantSaid(t, m.screen(), "trainyard top: lab.state: no trainyard runs there; trying again")
	m.Update(noted("job 3 is paused"))
	wantSaid(t, m.screen(), "job 3 is paused")
	m.Update(pageText{"the end", strings.Repeat("a line\n", 100) + "\x1b[2Jlast\x1b]0;x\a line\n"})
	if text := m.screen(); !strings.Contains(text, "\nlast line\n") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("%q", text)
	}
	m.Update(b)
	if strings.Contains(m.screen(), "trying again") {
		t.Error("an old loss is reported")
	}
}

// BenchmarkTop takes a look at 10,000 jobs and shows it.
func BenchmarkTop(b *testing.B) {
	many := busyBoard()
	for id := 100; id < 10000; id++ {
		many.jobs.Jobs = append(many.jobs.Jobs, api.Job{ID: id, Name: "sweep", State: "waiting"})
	}
	m, _ := requested(many)
	b.ReportAllocs()
	for b.Loop() {
		m.Update(many)
		m.screen()
	}
}
