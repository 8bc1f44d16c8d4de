package progress

import (
	"fmt"
	"testing"
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
