package order_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// Ensure that the class of a job is its priority and one more for each Age that it has waited in all, that it stays
// while the job runs, and that it changes at the very time it was said to.
func TestClasses(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		c := order.Classes{Age: time.Duration(1+r.IntN(9)) * time.Second}
		base := int64(r.IntN(7)) - 3
		spec := &sched.JobSpec{Priority: int32(base)}
		v := &sched.View{Jobs: []sched.Job{{Spec: spec, Arrived: sched.Time(r.IntN(5)), LastStart: sched.None}}}
		j, waited := &v.Jobs[0], time.Duration(0)
		v.Now = j.Arrived
		for range 20 {
			class, until := c.Class(v, 0)
			if want := base + min(int64(waited/c.Age), order.MostLifts); class != want {
				t.Fatalf("%v after %v of waiting: class %d, want %d", c, waited, class, want)
			}
			next := v.Now.Add(time.Duration(1 + r.Int64N(20e9)))
			switch {
			case j.Up && until != sched.Never:
				t.Fatalf("the class of a running job holds until %v, want never", until)
			case !j.Up:
				if until != sched.Never && r.IntN(2) == 0 {
					next = until
				}
				waited += next.Sub(v.Now)
				v.Now = min(next, until) - 1
				if same, _ := c.Class(v, 0); same != class {
					t.Fatalf("class %d at %v, before it changes, want %d", same, v.Now, class)
				}
			}
			v.Now = next
			if r.IntN(3) == 0 {
				j.Settle(v.Now)
				j.Up = !j.Up
			}
		}
	}
}
