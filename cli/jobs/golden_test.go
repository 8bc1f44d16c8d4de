package jobs

import (
	"flag"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

// wantSaid checks that a text has all of want.
func wantSaid(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("not said: %q\n%s", w, text)
		}
	}
}
