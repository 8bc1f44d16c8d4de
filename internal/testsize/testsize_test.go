package testsize

import (
	"flag"
	"testing"
)

var tries = Flag("tries", 3, 40, "times that nothing is tried")

// Ensure that -size chooses, and that a number that is given wins.
func TestCount(t *testing.T) {
	tests := []struct {
		size, tries string
		want        int
	}{
		{"ci", "0", 3}, {"full", "0", 40}, {"ci", "7", 7}, {"full", "7", 7},
	}
	for _, tt := range tests {
		set(t, tt.size, tt.tries)
		if got := tries.N(); got != tt.want {
			t.Errorf("-size %s -tries %s: %d, want %d", tt.size, tt.tries, got, tt.want)
		}
	}
	for _, bad := range [][2]string{{"huge", "0"}, {"ci", "-1"}} {
		set(t, bad[0], bad[1])
		if n, err := tries.of(bad[0]); err == nil {
			t.Errorf("-size %s -tries %s: %d, want an error", bad[0], bad[1], n)
		}
	}
}

// Ensure that Times multiplies in a full campaign alone.
func TestTimes(t *testing.T) {
	set(t, "ci", "0")
	if got := Times(5, 10); got != 5 {
		t.Errorf("-size ci: %d, want 5", got)
	}
	set(t, "full", "0")
	if got := Times(5, 10); got != 50 {
		t.Errorf("-size full: %d, want 50", got)
	}
}

func set(t *testing.T, size, tries string) {
	t.Helper()
	for name, value := range map[string]string{"size": size, "tries": tries} {
		was := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := flag.Set(name, was); err != nil {
				t.Error(err)
			}
		})
	}
}
