package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Ensure that lines are read by the user's pattern, that only those for us are believed next to it, and what is wrong
// with one is said.
func TestPattern(t *testing.T) {
	p, err := ParsePattern(`^it (?P<step>\d+)(?:/(?P<total>\d+))? .*loss: (?P<loss>[\d.e-]+)`)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(Own)
	r.Match(p)
	for line, want := range map[string]Reading{
		"it 3/90 x loss: 2.5e-1\n":                    {Has: Step | Total | Loss, Step: 3, Total: 90, Loss: 0.25},
		"it 4 x loss: nothing\n":                      {},
		"\x1b[1mit 5\x1b[0m loss: 1\n":                {Has: Step | Loss, Step: 5, Loss: 1},
		"Epoch 3/10, step 100/1000, loss 2.1\n":       {},
		"{'loss': 0.5, 'epoch': 1.0}\n":               {},
		"TRAINYARD step=7\n":                          {Has: Step, Step: 7},
		"it 99999999999999999999999 x loss: 1e999 \n": {},
	} {
		var got Reading
		for m := range r.Read(Output, []byte(line)) {
			got = m
		}
		if got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
		r = NewReader(Own)
		r.Match(p)
	}
	for text, want := range map[string]string{
		`step (\d+)`: "pattern \"step (\\\\d+)\" without a group (?P<step>...), (?P<epoch>...) or " +
			"(?P<samples>...), want one at least",
		`(?P<stop>\d+)`: `pattern with the group "stop", want some of step, total, epoch, samples, ` +
			`samples_per_sec, loss`,
		`(?P<step>\d+`: "pattern \"(?P<step>\\\\d+\": error parsing regexp: missing closing ): `(?P<step>\\d+`, " +
			"want a regular expression (RE2)",
		`(?P<total>\d+)`: "pattern \"(?P<total>\\\\d+)\" without a group (?P<step>...), (?P<epoch>...) or " +
			"(?P<samples>...), want one at least",
	} {
		if _, err := ParsePattern(text); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzPattern: whatever a pattern and a line are, there is an error or a reading of finite figures.
func FuzzPattern(f *testing.F) {
	f.Add(`(?P<step>\d+) (?P<loss>.*)`, "12 0.5")
	f.Fuzz(func(t *testing.T, text, line string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		if m := p.read([]byte(line)); m.Step < 0 || m.Total < 0 || m.Samples < 0 || !(m.Loss >= 0) || !(m.Epoch >= 0) ||
			!(m.Speed >= 0) {
			t.Errorf("%q of %q: %+v", text, line, m)
		}
	})
}

// Ensure that a pattern that is slow is dropped within a line of its 100 ms, that one that is fast never is, though
// lines of a job that writes too much are passed over until the next second, and that lines made for us always count.
func TestPatternIsBounded(t *testing.T) {
	p, err := ParsePattern(`^it (?P<step>\d+)`)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(r *Reader, text string) (steps []int64) {
		for m := range r.Read(Output, []byte(text)) {
			steps = append(steps, m.Step)
		}
		return steps
	}
	const line = "it 7 of something that is a little longer\n"
	for _, c := range []struct {
		each    time.Duration // that a line takes
		count   int           // lines in a chunk
		read    int           // that are read of the first
		dropped bool
	}{
		{each: 30 * time.Millisecond, count: 1000, read: 4, dropped: true},
		{each: time.Second, count: 1000, read: 1, dropped: true},
		{each: PatternTime / 10000, count: 11000, read: 11000},
		{each: time.Nanosecond, count: 1000, read: 1000},
	} {
		r := NewReader(Auto)
		r.Match(p)
		var cpu time.Duration
		looks := 0
		r.Bound(func() time.Duration {
			if looks++; looks%2 == 0 {
				cpu += c.each
			}
			return cpu
		})
		if got := lines(r, strings.Repeat(line, c.count)); len(got) != c.read || r.Dropped() != c.dropped {
			t.Errorf("%+v: %d lines, dropped %t", c, len(got), r.Dropped())
		}
		if c.dropped {
			r.budget.since = r.budget.since.Add(-time.Hour)
		}
		spent := r.Spent()
		if got := lines(r, line); (len(got) == 0) != (c.dropped || spent) {
			t.Errorf("%+v: %d lines later, spent %t", c, len(got), spent)
		}
		r.budget.since = r.budget.since.Add(-time.Hour)
		if got := lines(r, line); (len(got) == 0) != c.dropped {
			t.Errorf("%+v: %d lines an hour later", c, len(got))
		}
		if got := lines(r, "TRAINYARD step=9\n"); len(got) != 1 || got[0] != 9 {
			t.Errorf("%+v: %v of a line made for us", c, got)
		}
	}
}
