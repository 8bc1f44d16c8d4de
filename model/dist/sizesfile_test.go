package dist

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/trainyard/trainyard/internal/shareddata"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, file string
		want       []float64
	}{
		{"plain", "duration\n12\n4\n8\n", []float64{4, 8, 12}},
		{"CR LF, no last line end", "duration\r\n12\r\n4.5", []float64{4.5, 12}},
		{"quotes, spaces, blank lines, byte order mark", "\ufeff\"duration\"\n\n \"3\" \n 1e2\n\n", []float64{3, 100}},
		{"ties stay", "duration\n5\n5\n0\n", []float64{0, 5, 5}},
	}
	for _, tt := range tests {
		e, err := Read(strings.NewReader(tt.file), "f.csv")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if !slices.Equal(e.Sizes(), tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, e.Sizes(), tt.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct{ file, want string }{
		{"", `dist: f.csv: line 0: no sizes, want at least one below the heading "duration"`},
		{"duration\n", `dist: f.csv: line 1: no sizes, want at least one below the heading "duration"`},
		{"size\n1\n", `dist: f.csv: line 1: "size", want the heading "duration"`},
		{"12\n13\n", `dist: f.csv: line 1: "12", want the heading "duration"`},
		{"duration\n1\nsoon\n", `dist: f.csv: line 3: "soon", want a number >= 0`},
		{"duration\n-1\n", `dist: f.csv: line 2: "-1", want a number >= 0`},
		{"duration\nNaN\n", `dist: f.csv: line 2: "NaN", want a number >= 0`},
		{"duration\n1e999\n", `dist: f.csv: line 2: "1e999", want a number >= 0`},
		{"duration\n1e31\n", `dist: f.csv: line 2: "1e31", want a number <= 1e+30`},
		{"duration\n1,2\n", `dist: f.csv: line 2: "1,2", want a number >= 0`},
		{"duration\n1\n" + strings.Repeat("1", 70_000), `dist: f.csv: line 3: bufio.Scanner: token too long`},
		{"duration\n" + strings.Repeat("x", 99), `dist: f.csv: line 2: "` + strings.Repeat("x", 80) +
			`...", want a number >= 0`},
	}
	for _, tt := range tests {
		if _, err := Read(strings.NewReader(tt.file), "f.csv"); err == nil || err.Error() != tt.want {
			t.Errorf("%.20q: %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

// Ensure that a failing reader is reported as such, wrapped.
func TestReadPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	if _, err := Read(iotest.ErrReader(broken), "f.csv"); !errors.Is(err, broken) {
		t.Errorf("%v, want one that wraps %v", err, broken)
	}
}

// Ensure that the distribution that the Tiresias simulator ships is read whole: 1001 samples of a heavy tail.
func TestReadPublishedDistribution(t *testing.T) {
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "traces", "tiresias", "yarn-gput1000.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := Read(f, "yarn-gput1000.csv")
	if err != nil {
		t.Fatal(err)
	}
	if e.Count() != 1001 || e.Sizes()[0] != 121 {
		t.Errorf("%d samples from %v on, want 1001 from 121 on", e.Count(), e.Sizes()[0])
	}
	below := float64(e.AtMost(3249)) / float64(e.Count())
	if below < 0.59 || below > 0.63 {
		t.Errorf("share below 3250 is %v, want about 0.61", below)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"duration\n1\n2\n", "duration\r\n\"3\"\r\n", "duration\n-1\n",
		"\ufeffduration\n0x1p3\n", "\"", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Read(strings.NewReader(text), "f")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "dist: f: line ") {
				t.Errorf("error %q names no line", err)
			}
			return
		}
		if _, err := NewEmpirical(e.Sizes()); err != nil || !slices.IsSorted(e.Sizes()) {
			t.Errorf("sizes %v: %v", e.Sizes(), err)
		}
	})
}
