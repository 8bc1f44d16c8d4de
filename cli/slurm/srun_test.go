package slurm

import (
	"strings"
	"sync"
	"testing"
)

// Ensure that steps that start at the same time have numbers of their own, from 0 on, in each run directory.
func TestStepNumbers(t *testing.T) {
	if n := stepNumber(""); n != 0 {
		t.Errorf("no folder: step %d", n)
	}
	for range 2 {
		const all = 64
		var found [all]int
		var mu sync.Mutex
		var wait sync.WaitGroup
		dir := t.TempDir()
		for range all {
			wait.Go(func() {
				n := stepNumber(dir)
				mu.Lock()
				defer mu.Unlock()
				found[n]++
			})
		}
		wait.Wait()
		for n, times := range found {
			if times != 1 {
				t.Errorf("step %d: %d times", n, times)
			}
		}
	}
}

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
