package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that the tournament names the best job of those that ask for at most so many GPUs, as going through all jobs
// that wait does, whoever comes, goes or is passed by in a walk, and that it is kept where many groups wait, not where
// few do.
func TestWidths(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	v := cluster(2, 4, 900)
	b := booksOf(v)
	var gs groups
	w := &gs.widths
	shape, missed := map[sched.JobID]int32{}, map[int32]bool{}
	walk, kept := uint32(1), 0
	for step := range 30_000 {
		id := sched.JobID(r.IntN(len(v.Jobs)))
		x := &b.jobs[id]
		waves := step / 3000 % 2 // more come than go, then more go than come
		switch _, in := shape[id]; {
		case !in && r.IntN(3) >= 1+waves:
			// by and by there are more shapes, some of one width
			k := shapeKey{gpus: int32(1 + r.IntN(1+step/40)), user: int32(r.IntN(2))}
			x.shape, x.key = gs.shapeOf(k), sched.Key{Level: int64(r.IntN(2)), Value: float64(r.IntN(9))}
			if missed[x.shape] {
				continue // a walk adds no one
			}
			shape[id] = x.shape
			gs.add(b.jobs, id)
		case in && r.IntN(3) >= 2-waves && !missed[x.shape]:
			delete(shape, id)
			gs.remove(b.jobs, id)
		case r.IntN(20) == 0:
			w.restore(&gs, b.jobs)
			clear(missed)
			walk++
		case r.IntN(2000) == 0 && len(missed) == 0:
			gs.dissolve(b.jobs)
			clear(shape)
		}
		if (len(missed) > 0 || !w.keep(&gs, b.jobs)) && !w.on {
			if len(gs.waiting) >= manyWidths {
				t.Fatalf("%d groups wait and no tournament is kept", len(gs.waiting))
			}
			continue
		}
		kept++
		free := r.IntN(900)
		got := w.next(&gs, b.jobs, free, walk)
		want := sched.JobID(sched.None)
		for id, s := range shape {
			if int(gs.shapes[s].gpus) <= free && !missed[s] && (want == sched.None ||
				before(&b.jobs[id].key, &b.jobs[want].key, id, want)) {
				want = id
			}
		}
		if got == none != (want == sched.None) || got != none && gs.list[got].heap[0] != want {
			t.Fatalf("step %d, %d free: group %d, want that of job %d", step, free, got, want)
		}
		if got != none && r.IntN(3) == 0 {
			missed[gs.list[got].shape] = true
			w.miss(&gs, b.jobs, got, walk)
		}
	}
	if kept < 10_000 || kept > 29_000 {
		t.Errorf("a tournament was kept in %d steps of 30,000, want in some and not in others", kept)
	}
}

// Ensure that no tournament is kept of jobs whose keys grow.
func TestWidthsOfGrowingKeys(t *testing.T) {
	v := cluster(1, 4, 200)
	b := booksOf(v)
	var gs groups
	for id := range v.Jobs {
		b.jobs[id].shape = gs.shapeOf(shapeKey{gpus: int32(id)})
		gs.add(b.jobs, sched.JobID(id))
	}
	if !gs.widths.keep(&gs, b.jobs) {
		t.Fatal("none is kept of 200 groups")
	}
	id := slices.Max(gs.list[0].heap)
	gs.remove(b.jobs, id)
	b.jobs[id].key.Slope = 1
	gs.add(b.jobs, id)
	if gs.widths.keep(&gs, b.jobs) {
		t.Error("one is kept where a key grows")
	}
}
