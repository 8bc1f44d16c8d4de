package lint

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "lower the numbers in ceilings.txt to what is there")

const ceilingsFile = "ceilings.txt"

// finding is one place that breaks a rule.
type finding struct {
	at   string // file:line, or a file
	what string
	name string // the function, type or word, by which exceptions know it; may be empty
}

// judge fails the test if the lint found more than its ceiling. It logs every finding under -v, and after a failure.
func judge(t *testing.T, lint string, found []finding) {
	t.Helper()
	text, err := os.ReadFile(ceilingsFile)
	if err != nil {
		t.Fatal(err)
	}
	ceilings, err := parseCeilings(string(text))
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(f finding) bool { return excepted(lint, f) })
	ceiling, ok := ceilings[lint]
	if !ok {
		t.Fatalf("%s has no row for %s; found %d", ceilingsFile, lint, len(found))
	}
	if testing.Verbose() || len(found) > ceiling {
		for _, f := range found {
			t.Logf("%s: %s", f.at, f.what)
		}
	}
	t.Logf("%s: %d findings, at most %d allowed", lint, len(found), ceiling)
	switch {
	case len(found) > ceiling:
		t.Errorf("%s: %d findings, want at most %d: mend what is new (all are listed above)", lint, len(found), ceiling)
	case len(found) < ceiling && *rewrite:
		if err := os.WriteFile(ceilingsFile, []byte(lower(string(text), lint, len(found))), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// parseCeilings reads lines of a name and a number.
func parseCeilings(text string) (map[string]int, error) {
	ceilings := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%s: %q: want a name and a number", ceilingsFile, line)
		}
		ceilings[name] = n
	}
	return ceilings, nil
}

// lower returns the text with another number for the lint.
func lower(text, lint string, n int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, " "); name == lint {
			line = fmt.Sprintf("%s %d\n", lint, n)
		}
		out.WriteString(line)
	}
	return out.String()
}

func TestCeilings(t *testing.T) {
	text := "# a comment\nwidth 12\nwords 3\n"
	got, err := parseCeilings(text)
	if err != nil || len(got) != 2 || got["width"] != 12 || got["words"] != 3 {
		t.Errorf("parsed %v, %v", got, err)
	}
	if got, want := lower(text, "width", 7), "# a comment\nwidth 7\nwords 3\n"; got != want {
		t.Errorf("lowered to %q, want %q", got, want)
	}
	for _, bad := range []string{"width", "width many", "width -1"} {
		if _, err := parseCeilings(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// foundIn runs a lint on one Go file, for the tests that prove that the lint can fail.
func foundIn(t *testing.T, lint func(*tree) []finding, name, text string) []string {
	t.Helper()
	tr, err := readTree(mapFS(map[string]string{name: text}))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range lint(tr) {
		lines = append(lines, f.at+": "+f.what)
	}
	return lines
}

// expect compares findings with what is wanted of each: a part of its line.
func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: found %q, want %d with %q", what, got, len(want), want)
		return
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: found %q, want it to have %q", what, got[i], want[i])
		}
	}
}
