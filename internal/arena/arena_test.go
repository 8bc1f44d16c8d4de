package arena_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/internal/arena"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a heap gives jobs back by time, ties by job, as sorting them does.
func TestJobHeap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h arena.JobHeap
		var want []arena.JobAt
		for range r.IntN(40) {
			x := arena.JobAt{At: sched.Time(r.IntN(9)), Job: sched.JobID(r.IntN(9))}
			h.Push(x)
			want = append(want, x)
			if r.IntN(4) == 0 {
				got := h.Pop()
				i := 0
				for k := range want {
					if want[k].At < want[i].At || want[k].At == want[i].At && want[k].Job < want[i].Job {
						i = k
					}
				}
				if got != want[i] {
					t.Fatalf("popped %v, want %v of %v", got, want[i], want)
				}
				want = slices.Delete(want, i, i+1)
			}
		}
		slices.SortFunc(want, func(a, b arena.JobAt) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Job, b.Job))
		})
		for _, w := range want {
			if got := h.Pop(); got != w {
				t.Fatalf("popped %v, want %v", got, w)
			}
		}
	}
}

// Ensure that a recycled set is given out again, with what the next owner copies into it.
func TestSets(t *testing.T) {
	var p arena.Sets
	a := p.CopyOf([]sched.GPUID{1, 2, 3})
	p.Recycle(a)
	b := p.CopyOf([]sched.GPUID{7, 8, 9})
	if &a[0] != &b[0] || !arena.SameSet(b, []sched.GPUID{7, 8, 9}) {
		t.Errorf("%v, want the recycled set holding 7, 8, 9", b)
	}
	if c := p.CopyOf([]sched.GPUID{7, 8, 9}); &c[0] == &b[0] {
		t.Error("a set was given out twice")
	}
	wide := make([]sched.GPUID, 300)
	for i := range wide {
		wide[i] = sched.GPUID(i)
	}
	c := p.CopyOf(wide)
	p.Recycle(c)
	d := p.CopyOf(wide[:257])
	if &c[0] != &d[0] || !arena.SameSet(d, wide[:257]) || arena.SameSet(d, wide) {
		t.Error("a wide set is not given out again")
	}
	if d[200]++; arena.SameSet(d, wide[:257]) {
		t.Error("sets are the same that differ in one GPU")
	}
	if p.CopyOf(nil) != nil {
		t.Error("an empty set is not nil")
	}
	if allocs := testing.AllocsPerRun(100, func() { p.Recycle(p.CopyOf(b)) }); allocs > 0 {
		t.Errorf("%v allocations a copy, want 0", allocs)
	}
}
