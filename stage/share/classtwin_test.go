package share

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// Ensure that jobs wait in the order of priority plus one for each Age of waiting, then of arrival, at every moment,
// whoever comes, is held and is released meanwhile, and that the order changes when it was said to.
func TestWaitingTwin(t *testing.T) {
	const age = time.Hour
	rose := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 24))
		v := &sched.View{}
		var b book
		b.ByClass(order.Classes{Age: age})
		for range 60 {
			v.Now += sched.Time(r.Int64N(int64(age)))
			due := b.Rises() <= v.Now
			if b.Rise(v) != due {
				t.Fatalf("seed %d: the order changes %v, want %v", seed, !due, due)
			}
			if due {
				rose++
			}
			id := sched.JobID(r.IntN(len(v.Jobs) + 1))
			if int(id) == len(v.Jobs) {
				v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{Priority: int32(r.IntN(5) - 2)},
					State: sched.Held, Arrived: v.Now})
			}
			j := &v.Jobs[id]
			if j.Paused = j.State == sched.Waiting; j.Paused {
				j.State = sched.Held
			} else {
				j.State = sched.Waiting
			}
			b.sync(v, id)
			if want := inOrder(v, age); !slices.Equal(b.Waiting, want) {
				t.Fatalf("seed %d: %v wait, want %v", seed, b.Waiting, want)
			}
		}
	}
	if rose == 0 {
		t.Error("no one rose: nothing was tried")
	}
}

// inOrder returns who waits, as the table of classes has it.
func inOrder(v *sched.View, age time.Duration) (list []sched.JobID) {
	for id := range v.Jobs {
		if v.Jobs[id].State == sched.Waiting {
			list = append(list, sched.JobID(id))
		}
	}
	class := func(id sched.JobID) time.Duration {
		return time.Duration(v.Jobs[id].Spec.Priority) + v.Now.Sub(v.Jobs[id].Arrived)/age
	}
	slices.SortStableFunc(list, func(x, y sched.JobID) int { return cmp.Compare(class(y), class(x)) })
	return list
}
