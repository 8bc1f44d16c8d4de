package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that the jobs which are not away are those that going through all of them gives, in their order, whoever
// comes, goes and comes back, and that the list of them grows with those that are there, not with all that there were.
func TestPresent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b books
	var there []sched.JobID // in no order
	for n := range 20_000 {
		id := sched.JobID(n)
		b.grow(id, 0)
		b.enlist(id, 0)
		there = append(there, id)
		for len(there) > 50 {
			i := r.IntN(len(there))
			b.move(there[i], away)
			if back := there[i]; r.IntN(8) == 0 {
				b.move(back, holding)
				continue
			}
			there[i] = there[len(there)-1]
			there = there[:len(there)-1]
		}
		if r.IntN(100) > 0 {
			continue
		}
		var want []sched.JobID
		for at := range b.jobs {
			if b.jobs[at].in != away {
				want = append(want, sched.JobID(at))
			}
		}
		if got := b.present(); !slices.Equal(got, want) {
			t.Fatalf("after job %d: %v, want %v", n, got, want)
		}
	}
	if cap(b.here) > 1000 {
		t.Errorf("room for %d jobs, where 50 are there at most at a time", cap(b.here))
	}
}

// Ensure that shapes which differ in one thing stay apart, of widths that share a place among the recent as well.
func TestRecentShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var gs groups
	known := make(map[shapeKey]int32)
	for range 10_000 {
		k := shapeKey{gpus: 1 + r.Int32N(40), user: r.Int32N(2), order: r.Int32N(2), place: r.Int32N(2),
			types: sched.TypeSet(r.IntN(2)), cpus: float32(r.IntN(2)), memory: float32(r.IntN(2))}
		want, old := known[k]
		if !old {
			want = int32(len(known))
			known[k] = want
		}
		if got := gs.shapeOf(k); got != want || gs.shapes[got].shapeKey != k {
			t.Fatalf("%+v is shape %d, want %d", k, got, want)
		}
	}
}
