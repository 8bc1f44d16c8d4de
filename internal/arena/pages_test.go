package arena_test

import (
	"math/rand/v2"
	"testing"

	"github.com/trainyard/trainyard/internal/arena"
)

// Ensure that values in use are those of a map, on random uses and drops, and that one used again is zero.
func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p arena.Pages[int]
	want := map[int]int{}
	for step := range 20000 {
		i := r.IntN(1 + step/10)
		if _, used := want[i]; used {
			p.Drop(i)
			delete(want, i)
		} else {
			x := p.Use(i)
			if *x != 0 {
				t.Fatalf("value %d is %d from its start on, want 0", i, *x)
			}
			*x = step + 1
			want[i] = step + 1
		}
		at := r.IntN(2000)
		if x := p.At(at); want[at] != 0 && (x == nil || *x != want[at]) || want[at] == 0 && x != nil && *x != 0 {
			t.Fatalf("value %d is %v, want %d", at, x, want[at])
		}
	}
}
