package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// take returns the first n events, one per line.
func take(o *Outages, n int) []string {
	var list []string
	for range n {
		at, node, up := o.Next()
		list = append(list, fmt.Sprint(int64(at), " ", node, " ", up))
	}
	return list
}

// Ensure that equal seeds give equal outages, other seeds others, and that a node's outages do not depend on how many
// others there are.
func TestOutagesDeterministic(t *testing.T) {
	f := Failures{MTBF: 720 * time.Hour, Repair: 4 * time.Hour, Seed: 7}
	a, b := take(NewOutages(f, 50), 1000), take(NewOutages(f, 50), 1000)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("equal seeds, other outages")
	}
	first, at := a[0], sched.Never
	for i := range 50 {
		for o := NewOutages(f, i+1); ; {
			x, node, _ := o.Next()
			if node == i {
				at = min(at, x)
				break
			}
		}
	}
	if want := fmt.Sprint(int64(at)); first[:len(want)] != want {
		t.Errorf("first outage at %s, alone at %s", first, want)
	}
	f.Seed = 8
	if c := take(NewOutages(f, 50), 1000); c[0] == a[0] {
		t.Error("other seeds, equal outages")
	}
}

// Ensure that the draws stay what they were: recorded runs depend on them.
func TestOutagesGolden(t *testing.T) {
	got := fmt.Sprint(take(NewOutages(Failures{MTBF: time.Hour, Repair: time.Minute, Seed: 1}, 3), 5))
	if want := "[3283029099230 0 false 3343029099230 0 true 3679035413898 0 false 3739035413898 0 true 5281037136387 " +
		"2 false]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that events come in order of time then node, that each node goes down and up in turn, stays down for the
// repair and up for the mean time between failures, within four standard errors.
func TestOutagesOrderAndMean(t *testing.T) {
	for _, f := range []Failures{{MTBF: 720 * time.Hour, Repair: 4 * time.Hour, Seed: 7}, {MTBF: time.Hour, Seed: 1},
		{MTBF: 1, Repair: 1}} {
		const nodes, events = 100, 100_000
		o := NewOutages(f, nodes)
		var last [nodes]sched.Time
		var down [nodes]bool
		var now sched.Time
		before, sum, n := -1, 0.0, 0
		for range events {
			at, node, up := o.Next()
			if at < now || at == now && node < before || up != down[node] {
				t.Fatalf("%+v: node %d up %v at %v after node %d at %v", f, node, up, at, before, now)
			}
			if up && at.Sub(last[node]) != f.Repair {
				t.Fatalf("%+v: repair took %v", f, at.Sub(last[node]))
			}
			if !up {
				if at == last[node] {
					t.Fatalf("%+v: node %d was up for no time", f, node)
				}
				sum, n = sum+float64(at.Sub(last[node])), n+1
			}
			now, before, last[node], down[node] = at, node, at, !up
		}
		if mean := sum / float64(n) / float64(f.MTBF); f.MTBF > 1 && math.Abs(mean-1) > 4/math.Sqrt(float64(n)) {
			t.Errorf("%+v: mean up time %v of MTBF over %d outages", f, mean, n)
		}
	}
}

// Ensure that the first outages of many nodes are spread as the distribution says: seeds of neighbours do not show.
func TestOutagesNodesIndependent(t *testing.T) {
	const nodes = 10_000
	o := NewOutages(Failures{MTBF: time.Hour, Repair: math.MaxInt64, Seed: 3}, nodes)
	sum, early := 0.0, 0
	for range nodes {
		at, _, _ := o.Next()
		sum += at.Seconds() / 3600
		if at.Seconds() < 3600*math.Ln2 {
			early++
		}
	}
	if mean := sum / nodes; math.Abs(mean-1) > 0.04 || early < nodes/2-200 || early > nodes/2+200 {
		t.Errorf("mean %v, %d of %d before the median", mean, early, nodes)
	}
	if at, node, up := o.Next(); at != sched.Never || node != sched.None || up {
		t.Errorf("repairs that never end: %v %d %v", at, node, up)
	}
}

func TestOutagesNone(t *testing.T) {
	for _, o := range []*Outages{NewOutages(Failures{}, 10), NewOutages(Failures{Repair: time.Hour}, 10),
		NewOutages(Failures{MTBF: time.Hour}, 0)} {
		if at, node, up := o.Next(); at != sched.Never || node != sched.None || up {
			t.Errorf("got %v, %d, %v", at, node, up)
		}
	}
}

func BenchmarkOutages(b *testing.B) {
	o := NewOutages(Failures{MTBF: time.Minute, Repair: time.Second, Seed: 7}, 1000)
	b.ReportAllocs()
	for b.Loop() {
		o.Next()
	}
}
