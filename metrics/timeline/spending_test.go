package timeline_test

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that what is spent over time sums to what the run cost: nodes that are owned, nodes of pools with billing
// periods, and energy whose price changes. A run without prices knows none.
func TestSpending(t *testing.T) {
	const in = "../../internal/freeze/testdata/input/"
	tr, err := trace.Read(in+"mixed.csv", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(in + "price.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	price, err := power.ReadPrices(f, "price.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pools.yaml", "rented.yaml", "energy.yaml", "6x4"} {
		path := name
		if name != "6x4" {
			path = in + name
		}
		c, bad := cluster.Load(path)
		if bad != nil {
			t.Fatal(bad)
		}
		for i := range c.Nodes { // owned nodes have prices, too
			if name == "pools.yaml" {
				c.Nodes[i].DollarsHr = 1.25
			}
		}
		line := new(timeline.Timeline)
		q := simulate.Request{Trace: tr, Cluster: c, System: "las", Timeline: line,
			Energy: metrics.Energy{Price: price}}
		out, bad := q.Run(context.Background())
		if bad != nil {
			t.Fatalf("%s: %v", name, bad)
		}
		s := line.Series()
		for _, x := range []struct {
			what string
			list []float64
			want float64
		}{{"nodes", s.Dollars, out.Result.Cost}, {"energy", s.EnergyDollars, out.Result.EnergyCost}} {
			sum := 0.0
			for i, rate := range x.list {
				seconds := s.Width.Seconds()
				if i == len(x.list)-1 && s.Last > 0 {
					seconds = s.Last.Seconds()
				}
				sum += rate * seconds / 3600
			}
			if math.Abs(sum-x.want) > 1e-9*x.want || (x.list == nil) != (x.want == 0) {
				t.Errorf("%s: %s sum to %v dollars over time, want %v", name, x.what, sum, x.want)
			}
		}
		all := line.Points(timeline.Cost, 0, sched.Never, 7)
		sum := 0.0
		for _, p := range all.List {
			sum += p.Mean
		}
		if math.Abs(sum-out.Result.Cost) > 1e-9*sum || all.Known != (out.Result.Cost > 0) {
			t.Errorf("%s: points sum to %v dollars, known: %v, want %v", name, sum, all.Known, out.Result.Cost)
		}
	}
}
