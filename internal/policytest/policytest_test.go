package policytest_test

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/policytest"
)

// sum prints the sum of its words times a factor; what it is asked to "keep" it says nothing of.
func sum(c *policytest.Command) string {
	if c.Verb != "sum" {
		return ""
	}
	total := 0
	for c.More() {
		total += c.Int("term", c.Word("a term"), 0)
	}
	if f := c.Number("times", 1); f != 1 {
		total *= int(f)
	}
	return strings.Repeat("I", total) + "\n\nend  "
}

// Ensure that an outcome replaces what stood below its command, that all else stays, and that playing again changes
// nothing.
func TestPlay(t *testing.T) {
	const head = policytest.Intent + "it adds.\n\n"
	got, err := policytest.Play(head+"keep # as it is\n  old\nsum 1 2 times=2  \n  old\n  older\n# end\nsum 1", sum)
	want := head + "keep # as it is\nsum 1 2 times=2\n  IIIIII\n\n  end\n# end\nsum 1\n  I\n\n  end\n"
	want = strings.ReplaceAll(want, "\n\n  end", "\n  \n  end")
	if err != nil || got != want {
		t.Fatalf("%v\n%q, want\n%q", err, got, want)
	}
	if again, err := policytest.Play(got, sum); err != nil || again != got {
		t.Errorf("%v\n%q the second time, want\n%q", err, again, got)
	}
}

// Ensure that a file is refused, with the number of the line, for what no one would notice otherwise.
func TestPlayRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"sum 1":                  "line 1: want an intent",
		"#\nsum -1":              `line 2: sum: term "-1", want a whole number >= 0`,
		"#\n\nsum x":             `line 3: sum: term "x"`,
		"#\nsum times=a":         `line 2: sum: times "a", want a number`,
		"#\nsum tmies=2":         "line 2: sum: no key tmies",
		"#\nkeep this":           `line 2: keep: "this" is one word too many`,
		"#\nsum a=1 a=2":         "line 2: sum: a is given twice",
		"#\nsum 1\n  I\nsum 1.5": "line 4: sum: term",
	} {
		text = strings.Replace(text, "#\n", policytest.Intent+"it adds.\n", 1)
		if out, err := policytest.Play(text, sum); out != "" || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %q, %v, want %s", text, out, err, want)
		}
	}
}
