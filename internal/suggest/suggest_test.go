package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	columns := []string{"job_id", "submit_s", "num_gpus", "duration_s", "tiresias-gittins", "tiresias-las"}
	for _, c := range []struct{ word, want string }{
		{"num_gpu", "num_gpus"},
		{"NUM_GPUS", "num_gpus"},
		{"jobid", "job_id"},
		{"sumbit_s", "submit_s"},
		{"duration", "duration_s"},
		{"tiresias", "tiresias-las"}, // no near word: the shortest that starts so
		{"colour", ""},
		{"", ""},
		{"x", ""},
		{strings.Repeat("a", 1000), ""},
	} {
		if got := Nearest(c.word, columns); got != c.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := Nearest("ab", []string{"aa", "bb"}); got != "aa" {
		t.Errorf("of two equally near words got %q, want the earlier", got)
	}
	if got := Nearest("x", []string{"", "y"}); got != "" {
		t.Errorf("a word of one letter is near %q, want nothing", got)
	}
}

func TestHint(t *testing.T) {
	if got, want := Hint("fifo-skp", []string{"fifo", "fifo-skip"}), ` (did you mean "fifo-skip"?)`; got != want {
		t.Errorf("Hint = %q, want %q", got, want)
	}
	if got := Hint("zebra", []string{"fifo"}); got != "" {
		t.Errorf("Hint = %q, want none", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1},
		{"same", "same", 0}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
