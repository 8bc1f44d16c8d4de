package engine_test

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a rented node is paid for from the request to the end of the billing period in which it goes, by the
// price of then, and that without periods it is paid for to the nanosecond.
func TestBilling(t *testing.T) {
	for _, c := range []struct {
		billing time.Duration
		want    float64 // of a node requested at 0, there at 10 s, gone at 70 s, at 3.60 an hour
	}{{0, .07}, {time.Minute, .12}, {70 * time.Second, .07}, {time.Hour, 3.6}} {
		s := engine.NewState(eventlog.Header{Pools: []sched.PoolSpec{{Name: "p", GPUs: 1, Price: 3.6,
			Boot: 10 * time.Second, Billing: c.billing, Max: 1}}})
		for _, e := range []sched.Event{
			{Kind: sched.Moved, Node: sched.None, Code: 1},
			{Kind: sched.Ordered, Job: sched.None, Node: sched.None, Code: int32(sched.Rent), Value: 1},
			{Time: 10 * second, Kind: sched.NodeJoined, NodeSpec: &sched.NodeSpec{Name: "p-1", GPUs: 1}},
			{Time: 70 * second, Kind: sched.Moved, Node: 0, Code: int32(sched.NodeGone)},
			{Time: 70 * second, Kind: sched.Moved, Node: sched.None, Code: 0},
			{Time: 70 * second, Kind: sched.Ordered, Job: sched.None, Node: sched.None, Code: int32(sched.Rent)},
			{Time: 70 * second, Kind: sched.NodeLeft, Node: 0, Code: int32(sched.NodeGone)},
		} {
			s.Apply(&e)
		}
		if got := float64(s.View().Pools[0].SpentNow(1000 * second)); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("billing %v: spent %v, want %v", c.billing, got, c.want)
		}
	}
}
