package slurm

import (
	"strings"
	"testing"
)

// Ensure that lines get a label each, the last too if it has no end, and that one without an end is not kept for ever.
func TestLabelledLines(t *testing.T) {
	var b strings.Builder
	l := labelled{to: &b, label: "1: "}
	for _, text := range []string{"a\nb", "c\nd"} {
		if _, err := l.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	l.flush()
	if b.String() != "1: a\n1: bc\n1: d\n" {
		t.Errorf("%q", b.String())
	}
	for range 3 {
		if _, err := l.Write([]byte(strings.Repeat("x", mostRest))); err != nil || len(l.rest) > mostRest {
			t.Errorf("%d bytes kept, %v", len(l.rest), err)
		}
	}
}
