package kept

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// Ensure that what a job wrote last is reported of a failure, whatever it wrote before: a bar of megabytes is a single
// line.
func TestLastLines(t *testing.T) {
	const much = 11 * maxPiece
	bar := strings.Repeat("\r 10%|#         | 10/100", much/24) + "\r100%|##########| 100/100"
	traceback := "\nTraceback (most recent call last):\nRuntimeError: boom\n"
	for name, c := range map[string]struct {
		wrote string
		want  []string
	}{
		"nothing":    {"", nil},
		"few lines":  {"a\nb\n", []string{"a", "b"}},
		"many lines": {strings.Repeat("a\n", 20) + "b\nc", []string{"a", "b", "c"}},
		"a bar":      {"starts\n" + bar, []string{"100%|##########| 100/100"}},
		"a bar, a crash": {"starts\n" + bar + traceback,
			[]string{"100%|##########| 100/100", "Traceback (most recent call last):", "RuntimeError: boom"}},
		"a long line": {strings.Repeat("x", much), []string{strings.Repeat("x", maxLine)}},
	} {
		dir := t.TempDir()
		run := shim.State(dir).RunDir(3, 1)
		if err := os.MkdirAll(string(run), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(run.Output(), []byte(c.wrote), 0o600); err != nil {
			t.Fatal(err)
		}
		got := Outputs(dir).Tail(3, 1, 3)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %.200q, want %.200q", name, got, c.want)
		}
	}
}
