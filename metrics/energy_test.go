package metrics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// bench is a state with a Recorder that is given events by hand.
type bench struct {
	s   *engine.State
	rec *metrics.Recorder
}

func newBench(nodes ...sched.NodeSpec) *bench {
	b := &bench{engine.NewState(eventlog.Header{ShareLimit: 4}), &metrics.Recorder{}}
	for i := range nodes {
		b.report(sched.Event{Kind: sched.NodeJoined, NodeSpec: &nodes[i]})
	}
	return b
}

func (b *bench) report(e sched.Event) {
	b.s.Apply(&e)
	b.rec.Log(b.s.View(), &e)
}

// start lets a new job start on the given GPUs at a time in hours.
func (b *bench) start(at float64, util float32, cap sched.Watts, gpus ...sched.GPUID) {
	now, id := hours(at), sched.JobID(len(b.s.View().Jobs))
	b.report(sched.Event{Time: now, Kind: sched.JobArrived,
		Spec: &sched.JobSpec{Util: util, GPUs: sched.Rigid(len(gpus)),
			Share: sched.ShareAllow}})
	b.report(sched.Event{Time: now, Kind: sched.Decided, Job: id, GPUs: gpus,
		Target: &sched.Target{Job: id, Config: sched.Config{Share: sched.Shared, Cap: cap}}})
	b.report(sched.Event{Time: now, Kind: sched.Ordered, Job: id, Attempt: 1, Code: int32(sched.Start)})
	b.report(sched.Event{Time: now, Kind: sched.AttemptStarted, Job: id, Attempt: 1, WorkFrom: now, Rate: 1})
}

func (b *bench) end(at float64, id sched.JobID) {
	b.report(sched.Event{Time: hours(at), Kind: sched.AttemptEnded, Job: id, Attempt: 1, Outcome: sched.Finished})
}

func (b *bench) meter(at float64, w float64) {
	b.report(sched.Event{Time: hours(at), Kind: sched.Measured, Job: sched.None, Value: w})
}

func hours(h float64) sched.Time { return sched.Time(sched.Seconds(h * 3600)) }

// kWh returns what the jobs answer for.
func (b *bench) kWh() (list []float64, sum float64) {
	for i := range b.rec.Jobs {
		x := float64(b.rec.Jobs[i].Energy) / 3.6e6
		list, sum = append(list, x), sum+x
	}
	return list, sum
}

// Reference: EaCO, tables 1 to 4. Ensure that energy is the integral of node power over the time the node is busy,
// however jobs share it: ResNet-18 alone 959 W x 35.13 h = 33.69 kWh, four jobs 1944 W x 48.18 h = 93.66 kWh.
func TestEaCOAccounting(t *testing.T) {
	eight := []sched.GPUID{0, 1, 2, 3, 4, 5, 6, 7}
	node := sched.NodeSpec{Name: "n", GPUs: 8, IdleW: 650}
	b := newBench(node)
	b.meter(0, 959)
	b.start(0, .1117, 0, eight...)
	b.end(35.13, 0)
	if got := fmt.Sprintf("%.2f", b.rec.Result("").EnergyKWh); got != "33.69" {
		t.Errorf("ResNet-18 took %s kWh, want 33.69", got)
	}
	b = newBench(node)
	b.meter(0, 1944)
	for _, util := range []float32{.0472, .1117, .3661, .4801} {
		b.start(0, util, 0, eight...)
	}
	for i, at := range []float64{41, 43, 44.66, 48.18} {
		b.end(at, sched.JobID(i))
	}
	res := b.rec.Result("")
	jobs, sum := b.kWh()
	if got := fmt.Sprintf("%.2f %.2f", res.EnergyKWh, sum); got != "93.66 93.66" || res.EnergyIdle != 0 {
		t.Errorf("four jobs took %s kWh, idle %v, want 93.66 of both", got, res.EnergyIdle)
	}
	for i := range jobs[1:] {
		if !(jobs[i+1] > jobs[i]) {
			t.Errorf("%v kWh, want more of who uses more for longer", jobs)
		}
	}
}

// Ensure that a power cap enters by what is known of it, and by its bound where nothing is; and that another cap holds
// from then on.
func TestCaps(t *testing.T) {
	known := power.Caps{{Limit: 100, Power: 90, Speed: .5}, {Limit: 200, Power: 180, Speed: 1}}
	for _, c := range []struct {
		what string
		caps func(sched.TypeID, *sched.JobSpec) power.Caps
		want float64
	}{
		{"known", func(sched.TypeID, *sched.JobSpec) power.Caps { return known }, 200 + 100},
		{"nothing known of this job", func(sched.TypeID, *sched.JobSpec) power.Caps { return nil }, 200 + 125},
		{"nothing known", nil, 200 + 125},
	} {
		b := newBench(sched.NodeSpec{Name: "n", GPUs: 1, BusyGPUW: 200})
		b.rec.Energy.Caps = c.caps
		b.start(0, 0, 0, 0)
		cap := sched.Watts(125) // 112.5 W of 180 W as measured, halfway to 100 W
		if c.caps != nil && c.what == "known" {
			cap = 100
		}
		b.report(sched.Event{Time: hours(1), Kind: sched.Ordered, Attempt: 1, Code: int32(sched.Adjust),
			Value: float64(cap)})
		b.end(2, 0)
		if got := b.rec.Result("").EnergyKWh * 1000; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v Wh, want %v", c.what, got, c.want)
		}
	}
}

// Ensure that energy costs and emits what its hour says, and that what is bought is not mixed with what is rented.
func TestEnergyCost(t *testing.T) {
	b := newBench(sched.NodeSpec{Name: "n", GPUs: 1, BusyGPUW: 500, IdleW: 500, DollarsHr: 3})
	b.rec.Energy = metrics.Energy{Price: constant("price", ".25"), Carbon: constant("grams", "400")}
	b.start(1, 0, 0, 0)
	b.end(3, 0)
	if r := b.rec.Result(""); math.Abs(r.EnergyKWh-2) > 1e-12 || math.Abs(r.EnergyCost-.5) > 1e-12 ||
		math.Abs(r.Carbon-800) > 1e-9 || math.Abs(r.Cost-6) > 1e-12 {
		t.Errorf("%v kWh for %v, %v g, nodes %v, want 2, 0.5, 800, 6", r.EnergyKWh, r.EnergyCost, r.Carbon, r.Cost)
	}
}

// Ensure that the price of owned nodes can change, of one or of all, and that a node which comes back costs what it
// cost.
func TestOwnedPrice(t *testing.T) {
	spec := sched.NodeSpec{Name: "a", GPUs: 1, Pool: sched.None, DollarsHr: 1}
	b := newBench(spec, sched.NodeSpec{Name: "b", GPUs: 1, Pool: sched.None, DollarsHr: 2})
	b.start(0, 0, 0, 0)
	price := func(at float64, n sched.NodeID, x float64) {
		b.report(sched.Event{Time: hours(at), Kind: sched.PriceChanged, Pool: sched.None, Node: n, Value: x})
	}
	// 3 so far
	price(1, 1, 5)
	// 6 more
	price(2, sched.None, 4)
	// 8 more
	b.report(sched.Event{Time: hours(3), Kind: sched.NodeLeft, Node: 1, Code: int32(sched.NodeDown)})
	// 4 more
	b.report(sched.Event{Time: hours(4), Kind: sched.NodeJoined,
		NodeSpec: &sched.NodeSpec{Name: "b", GPUs: 1, Pool: sched.None, DollarsHr: 2}})
	// 8 more
	b.end(5, 0)
	if r := b.rec.Result(""); math.Abs(r.Cost-29) > 1e-9 {
		t.Errorf("cost %v, want 29", r.Cost)
	}
}

// constant is the series that has the value for ever.
func constant(column, value string) *power.Series {
	s, err := power.ReadSeries(strings.NewReader("start,"+column+"\n0,"+value+"\n"), "constant", column, 0)
	if err != nil {
		panic(err)
	}
	return s
}

// Ensure that a node of which nothing is known is shared among those that hold it from when it is first measured, also
// where they started before, and by those that come and go since.
func TestMeasuredLate(t *testing.T) {
	b := newBench(sched.NodeSpec{Name: "n", GPUs: 8})
	b.start(0, .5, 0, 0, 1)
	b.start(0, .5, 0, 2, 3)
	b.start(.5, .5, 0, 4, 5)
	b.end(.75, 1)
	b.meter(1, 1000)
	b.start(1.5, .5, 0, 6, 7)
	b.meter(1.5, 1500)
	b.end(2, 0)
	b.meter(2, 1000)
	b.end(3, 2)
	b.end(3, 3)
	if list, sum := b.kWh(); fmt.Sprintf("%.3f %.3f", list, sum) != "[0.500 0.000 1.000 0.750] 2.250" {
		t.Errorf("%.3f, in all %.3f, want 0.500, 0, 1.000 and 0.750", list, sum)
	}
}
