package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// keyed ranks jobs by a table.
type keyed []sched.Key

func (k keyed) Key(_ *sched.View, id sched.JobID) (sched.Key, sched.Time) { return k[id], sched.Never }

// crowd is holders of random ranks, of random widths and on random GPUs of so many nodes, some of which may not be
// used; job 0 waits.
func crowd(r *rand.Rand, nodes, gpus, jobs int) (*sched.View, *victims) {
	v := cluster(nodes, gpus, jobs)
	for g := range v.GPUs {
		v.GPUs[g].Quarantined = r.IntN(10) == 0
	}
	keys := make(keyed, jobs)
	for id := range keys {
		keys[id] = sched.Key{Level: int64(r.IntN(2)), Value: float64(r.IntN(6)), Slope: float64(r.IntN(3) - 1)}
	}
	b := booksOf(v)
	x := &victims{books: b, ranks: &ranks{order: keys, holders: true}, protection: &protection{}}
	left := r.Perm(len(v.GPUs))
	for id := range sched.JobID(jobs) {
		b.jobs[id].shape = x.ranks.groups.shapeOf(shapeKey{gpus: 1})
		if n := min(1+r.IntN(1+r.IntN(2*gpus)), len(left)); id > 0 && n > 0 {
			set := make([]sched.GPUID, n)
			for i := range set {
				set[i] = sched.GPUID(left[i])
			}
			slices.Sort(set)
			left = left[n:]
			b.book(id, set)
			b.move(id, holding)
		}
		x.ranks.rekey(v, b, id, nil)
	}
	v.Now = sched.Time(time.Second)
	return v, x
}

// plainLast evicts those who rank behind job id from the worst on until a node has n GPUs, and returns the last; None
// if none has.
func plainLast(v *sched.View, b *books, id sched.JobID, n int) sched.JobID {
	now := v.Now.Seconds()
	var behind []sched.JobID
	for h := range b.jobs {
		if h := sched.JobID(h); b.jobs[h].in == holding && b.beforeAt(id, h, now) {
			behind = append(behind, h)
		}
	}
	slices.SortFunc(behind, func(i, j sched.JobID) int {
		if b.beforeAt(j, i, now) {
			return -1
		}
		return 1
	})
	has := make([]int, len(v.Nodes))
	for g := range v.GPUs {
		if b.ledger.IsFree(sched.GPUID(g)) {
			has[v.GPUs[g].Node]++
		}
	}
	for _, h := range behind {
		for _, g := range b.ledger.Set(h) {
			if v.Usable(g) {
				has[v.GPUs[g].Node]++
			}
		}
		if slices.Max(has) >= n {
			return h
		}
	}
	return sched.None
}

// Ensure that the last victim of those who leave from the worst on is the one that evicting one after the other finds,
// among holders whose ranks grow at several rates, on nodes of which not all GPUs may be used.
func TestLeaveUntil(t *testing.T) {
	found := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		v, x := crowd(r, 1+r.IntN(6), 1+r.IntN(6), 1+r.IntN(20))
		for n := 1; n <= v.Nodes[0].Spec.GPUs; n++ {
			if x.books.ledger.MaxFree(0) >= n {
				continue // it fits
			}
			want := plainLast(v, x.books, 0, n)
			got := x.leaveUntil(v, 0, v.Now.Seconds(), func(_ sched.NodeID, has int) bool { return has >= n })
			if got != want {
				t.Fatalf("seed %d: job %d is the last to leave for %d GPUs, want %d", seed, got, n, want)
			}
			if got != sched.None {
				found++
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d victims found: the worlds say little", found)
	}
}

// Ensure that what is looked at for a gang does not grow with the holders that need not leave.
func TestLeaveUntilCounts(t *testing.T) {
	for _, nodes := range []int{30, 300, 3000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			v := cluster(nodes, 2, 2*nodes+1)
			keys := make(keyed, len(v.Jobs))
			for id := range keys {
				keys[id].Value = float64((id + 1) / 2 * 7 % 31) // both of a node rank alike
			}
			b := booksOf(v)
			x := &victims{books: b, ranks: &ranks{order: keys, holders: true}, protection: &protection{}}
			b.jobs[0].shape = x.ranks.groups.shapeOf(shapeKey{gpus: 2})
			for id := range sched.JobID(len(keys)) {
				if id > 0 {
					b.book(id, []sched.GPUID{sched.GPUID(id - 1)})
					b.move(id, holding)
				}
				x.ranks.rekey(v, b, id, nil)
			}
			looks := 0
			last := x.leaveUntil(v, 0, 0, func(_ sched.NodeID, has int) bool {
				looks++
				return has == 2
			})
			if last == sched.None || looks != 2 {
				t.Errorf("job %d is the last to leave, %d holders looked at; want 2", last, looks)
			}
		})
	}
}
