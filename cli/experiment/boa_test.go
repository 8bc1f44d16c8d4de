package experiment

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/parallel"
)

// Ensure that the experiment runs without data, in 80 columns, and prints the same twice.
func TestBOAOutput(t *testing.T) {
	print := func() string {
		m := ownMix()
		m.Hours, m.WarmUp, m.Seeds, m.Budgets = 6, 2, 2, []float64{40}
		if err := parallel.Do(t.Context(), runtime.GOMAXPROCS(0), m.tasks(), nil); err != nil {
			t.Fatal(err)
		}
		m.sum()
		var b bytes.Buffer
		if err := printBOA(&b, []*boaMix{m}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text := print()
	if again := print(); again != text {
		t.Errorf("second run printed\n%s\nafter\n%s", again, text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, row := range boaRows {
		if !strings.Contains(text, row.label) {
			t.Errorf("no row %s", row.label)
		}
	}
}
