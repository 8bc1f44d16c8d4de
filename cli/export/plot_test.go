package export

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

const twelve = "../../report/testdata/twelve.jsonl"

// types runs export or plot, and returns its exit code and what it wrote to stderr.
func types(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, stderr bytes.Buffer
	code := term.Execute(t.Context(), term.Root(Verbs()...), args, &out, &stderr)
	if out.Len() > 0 {
		t.Errorf("%v wrote %q to the standard output", args, out.String())
	}
	return code, stderr.String()
}

// Ensure that each kind is drawn of a log, as SVG and PNG, the same bytes twice.
func TestPlot(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"gantt", "heat", "cdf", "queue", "losses", "compare"} {
		for _, name := range []string{"a.svg", "b.svg", "c.png"} {
			if code, stderr := types(t, "plot", kind, twelve, "-o", filepath.Join(dir, name)); code != 0 {
				t.Fatalf("%s: exit code %d: %s", kind, code, stderr)
			}
		}
		a, b := read(t, filepath.Join(dir, "a.svg")), read(t, filepath.Join(dir, "b.svg"))
		if a != b || !strings.HasPrefix(a, "<svg ") {
			t.Errorf("%s: two pictures of one log differ, or are none", kind)
		}
		if png := read(t, filepath.Join(dir, "c.png")); !strings.HasPrefix(png, "\x89PNG") {
			t.Errorf("%s: no PNG", kind)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ensure that bad input is one error that says what is wrong and what was wanted, that nothing half written is left,
// and that a file that was there stays.
func TestPlotBad(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := read(t, twelve)
	cut, two := file("cut.jsonl", log[:len(log)-20]), file("two.jsonl", log+log)
	doc := file("doc.json", "{\n \"schema\": \"trainyard.simulate/v1\",\n \"results\": []\n}\n")
	plan := file("plan.json", "{\n \"schema\": \"trainyard.plan/v1\", \"frontier\": [{\"budget\": -1}]}")
	said := file("said.json", "{\n \"schema\": \"trainyard.calibration/v1\", \"expected\": 0.8, \"rows\": "+
		"[{\"of\": \"end\", \"judged\": 1, \"inside\": 2}]}")
	unsaid := file("unsaid.json", "{\n \"schema\": \"trainyard.calibration/v1\", \"expected\": 0.8, \"rows\": []}")
	empty, text := file("empty.jsonl", ""), file("text.txt", "hello\n")
	out := file("was.svg", "as it was")
	for _, x := range []struct {
		args string
		code int
		want string
	}{
		{"", term.ExitUsage, "want a kind of picture"},
		{"pie " + twelve, term.ExitUsage, `kind "pie", want gantt`},
		{"gantt", term.ExitUsage, "no input given, want a log"},
		{"frontier", term.ExitUsage, "documents of plan --json"},
		{"gantt " + twelve + " " + twelve, term.ExitUsage, "gantt of 2 inputs, want at most 1"},
		{"gantt --style bright " + twelve, term.ExitUsage, "want paper, screen, dark"},
		{"gantt --by moon " + twelve, term.ExitUsage, "want model, user, class, width"},
		{"heat --by user " + twelve, term.ExitUsage, "--by is of gantt"},
		{"heat --at 1h " + twelve, term.ExitUsage, "--at is of gantt"},
		{"gantt --at -1h " + twelve, term.ExitUsage, "want a time above 0"},
		{"gantt --width 84 " + twelve, term.ExitUsage, "want a length from 160px"},
		{"gantt --width NaNmm " + twelve, term.ExitUsage, "want a length from 160px"},
		{"gantt " + dir + "/none.jsonl", term.ExitNotFound, "no such file"},
		{"gantt " + dir, term.ExitMalformed, "is a directory"},
		{"gantt " + empty, term.ExitMalformed, "want a header"},
		{"gantt " + text, term.ExitMalformed, "text.txt"},
		{"gantt " + cut, term.ExitMalformed, "cut short"},
		{"gantt " + two, term.ExitMalformed, "does not follow the one before"},
		{"gantt " + doc, term.ExitMalformed, "want a log"},
		{"compare " + doc, term.ExitMalformed, "no result in it"},
		{"compare " + plan, term.ExitMalformed, "want trainyard.simulate/v1"},
		{"frontier " + plan, term.ExitMalformed, "budget -1"},
		{"frontier " + doc, term.ExitMalformed, "want trainyard.plan/v1"},
		{"frontier " + twelve, term.ExitMalformed, "no document of plan --json"},
		{"calibration", term.ExitUsage, "a document of GET /v1/calibration"},
		{"calibration " + said + " " + said, term.ExitUsage, "calibration of 2 inputs, want at most 1"},
		{"calibration " + said, term.ExitMalformed, "row 1: 2 of 1 inside"},
		{"calibration " + unsaid, term.ExitMalformed, "no forecast could be judged yet"},
		{"calibration " + plan, term.ExitMalformed, "want trainyard.calibration/v1"},
		{"gantt --at 1m " + twelve, term.ExitGeneral, "by-hand"},
	} {
		code, stderr := types(t, append(append([]string{"plot"}, strings.Fields(x.args)...), "-o", out)...)
		if code != x.code || !strings.Contains(stderr, x.want) {
			t.Errorf("plot %s: exit code %d, %q, want %d and %q", x.args, code, stderr, x.code, x.want)
		}
	}
	for _, to := range []string{"", "a.pdf", dir, filepath.Join(dir, "none", "a.svg")} {
		if code, stderr := types(t, "plot", "gantt", twelve, "-o", to); code == 0 || stderr == "" {
			t.Errorf("-o %q: exit code %d, %q, want an error", to, code, stderr)
		}
	}
	if got := read(t, out); got != "as it was" {
		t.Errorf("the file that was there is %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}
