package term

import (
	"strings"
	"testing"
)

func TestShortTime(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{
		{0, "0s"}, {1e-9, "<1ms"}, {0.001, "1ms"}, {0.9994, "999ms"}, {0.9996, "1s"}, {9.3333, "9.33s"}, {10, "10s"},
		{59.94, "59.9s"}, {59.96, "1m00s"}, {3599.4, "59m59s"}, {3599.6, "1h00m"}, {5000, "1h23m"}, {86369, "23h59m"},
		{86371, "1d00h"}, {2 * 86400, "2d00h"}, {99*86400 + 23*3600, "99d23h"}, {100 * 86400, "100d"},
		{36525 * 86400, "36525d"},
	} {
		if got := ShortTime(c.seconds); got != c.want {
			t.Errorf("shortTime(%v) = %s, want %s", c.seconds, got, c.want)
		}
	}
}

// TestShortTimeWidth checks the width that the table counts on, over all orders of magnitude.
func TestShortTimeWidth(t *testing.T) {
	for x := 1e-9; x < 36525*86400; x *= 1.0007 {
		if got := ShortTime(x); len(got) > 6 {
			t.Fatalf("shortTime(%v) = %s, want at most 6 characters", x, got)
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		x, base float64
		want    string
	}{
		{68, 100, "-32%"}, {100, 100, "+0%"}, {99.9, 100, "+0%"}, {104, 100, "+4%"}, {0, 100, "-100%"}, {1, 0, ""},
		{994, 100, "+894%"}, {1200, 100, "x12"},
	} {
		if got := Change(c.x, c.base); got != c.want {
			t.Errorf("change(%v, %v) = %q, want %q", c.x, c.base, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	got := Wrap("one two three four five", 12, 3)
	if want := "one two\n   three\n   four five"; got != want {
		t.Errorf("wrap = %q, want %q", got, want)
	}
	if got := Wrap(strings.Repeat("x", 30)+" y", 12, 3); !strings.HasSuffix(got, "\n   y") {
		t.Errorf("wrap of a long word = %q, want it on a line of its own", got)
	}
}

// TestTableWidth checks that columns move apart when there is room, and no further than three spaces.
func TestTableWidth(t *testing.T) {
	tab := &Table{}
	tab.Add("name", "a", "b")
	tab.Add("x", "100", "2")
	for width, want := range map[int]string{5: "name   a b\nx    100 2\n", 12: "name    a  b\nx     100  2\n",
		80: "name     a   b\nx      100   2\n"} {
		if got := tab.Text(width); got != want {
			t.Errorf("at %d columns:\n%swant\n%s", width, got, want)
		}
	}
}

// Ensure that words of a command line are quoted as a shell wants them.
func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"": "''", "train.py": "train.py", "--lr=1e-3": "--lr=1e-3",
		"a  b": "'a  b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "~": "'~'"} {
		if got := ShellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
