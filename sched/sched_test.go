package sched_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a Bitset holds what a map holds and is walked in increasing order.
func TestBitset(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 1 + r.IntN(200)
		b, want := sched.NewBitset(n), map[int]bool{}
		for range 100 {
			i := r.IntN(n)
			k := 1 + r.IntN(min(64, n-i))
			switch r.IntN(4) {
			case 0:
				b.Set(i)
				want[i] = true
			case 1:
				b.Clear(i)
				delete(want, i)
			case 2:
				b.SetFrom(i, k)
				for j := range k {
					want[i+j] = true
				}
			case 3:
				b.ClearFrom(i, k)
				for j := range k {
					delete(want, i+j)
				}
			}
		}
		b = b.Grow(2 * n)
		var got, all []int
		for i := b.Next(0); i >= 0; i = b.Next(i + 1) {
			got = append(got, i)
		}
		for i := range n {
			if want[i] {
				all = append(all, i)
			}
			if b.Has(i) != want[i] {
				t.Fatalf("seed %d: Has(%d) = %v", seed, i, b.Has(i))
			}
		}
		if !slices.Equal(got, all) || b.Next(1000) != -1 {
			t.Fatalf("seed %d: %v, want %v", seed, got, all)
		}
	}
}

// Ensure that the GPUs of a set that are on its first node are counted as they are by looking at each.
func TestOnNode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	v := &sched.View{}
	for n := range 20 {
		first := sched.GPUID(len(v.GPUs))
		for range 1 + r.IntN(9) {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(n)})
		}
		v.Nodes = append(v.Nodes, sched.Node{First: first, Spec: sched.NodeSpec{GPUs: len(v.GPUs) - int(first)}})
	}
	for range 500 {
		var set []sched.GPUID
		for g := range v.GPUs {
			if r.IntN(4) > 0 {
				set = append(set, sched.GPUID(g))
			}
		}
		for len(set) > 0 {
			want := slices.IndexFunc(set, func(g sched.GPUID) bool { return v.GPUs[g].Node != v.GPUs[set[0]].Node })
			if want < 0 {
				want = len(set)
			}
			if got := v.OnNode(set); got != want {
				t.Fatalf("%d of %v are on node %d, want %d", got, set, v.GPUs[set[0]].Node, want)
			}
			set = set[want:]
		}
	}
}

// Ensure that times print as many digits as they need and that sums stop at Never.
func TestTime(t *testing.T) {
	for want, d := range map[string]time.Duration{"0": 0, "12": 12e9, "0.5": 5e8, "1.000000001": 1e9 + 1,
		"-2.25":                 -225e7,
		"-9223372036.854775808": math.MinInt64} {
		if got := sched.FormatSeconds(d); got != want {
			t.Errorf("%d ns prints as %q, want %q", int64(d), got, want)
		}
	}
	for _, c := range []struct {
		t    sched.Time
		d    time.Duration
		want sched.Time
	}{{5, 0, 5}, {5, -7, -2}, {sched.Never, 1, sched.Never}, {sched.Never - 1, 1, sched.Never},
		{5, math.MaxInt64, sched.Never}, {sched.Never, 0, sched.Never}} {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.t, c.d, got, c.want)
		}
	}
	if s := sched.Never.String(); s != "never" {
		t.Errorf("Never prints as %q", s)
	}
}

// Ensure that names get dense numbers in order of first use and that "" is 0.
func TestNames(t *testing.T) {
	var n sched.Names
	got := []int32{n.ID("b"), n.ID(""), n.ID("a"), n.ID("b")}
	if !slices.Equal(got, []int32{1, 0, 2, 1}) || n.Len() != 2 || n.Name(2) != "a" || n.Name(0) != "" {
		t.Errorf("ids %v, %d names", got, n.Len())
	}
	if id, ok := n.Lookup("zz"); ok || id != 0 {
		t.Errorf("unknown name has id %d", id)
	}
}

// Ensure that each wrong field of a job is named, with its value and what is wanted.
func TestJobSpecValidate(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(*sched.JobSpec)
	}{
		{"gpus 0", func(s *sched.JobSpec) { s.GPUs.Min = 0 }},
		{"gpus 2..1", func(s *sched.JobSpec) { s.GPUs = sched.Range{Min: 2, Want: 2, Max: 1} }},
		{"batch 5..4", func(s *sched.JobSpec) { s.Batch = sched.BatchRange{Min: 5, Max: 4} }},
		{"submit", func(s *sched.JobSpec) { s.Submit = -1 }},
		{"cpus NaN", func(s *sched.JobSpec) { s.CPUs = float32(math.NaN()) }},
		{"retries -1", func(s *sched.JobSpec) { s.Retries = -1 }},
	} {
		s := sched.JobSpec{GPUs: sched.Rigid(1)}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		c.spoil(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// Ensure that service and run time grow from started to ended only, and that settling twice changes nothing.
func TestSettle(t *testing.T) {
	j := sched.Job{GPUs: []sched.GPUID{1, 2}, Up: true, Settled: 10e9}
	j.Settle(13e9)
	j.Settle(13e9)
	if j.Service != 6 || j.Run != 3*time.Second || j.ServiceNow(14e9) != 8 || j.RunNow(14e9) != 4*time.Second {
		t.Errorf("service %v, run %v", j.Service, j.Run)
	}
	j.Up = false
	j.Settle(20e9)
	if j.Service != 6 || j.ServiceNow(99e9) != 6 {
		t.Errorf("service %v after the end, want 6", j.Service)
	}
}

// Ensure that work goes on at its rate, from the end of a restart on, and stands still when the attempt is stopping.
func TestWorkNow(t *testing.T) {
	j := sched.Job{Attempt: sched.Running, Work: 5 * time.Second, WorkFrom: 10e9, Rate: 0.5}
	for now, want := range map[sched.Time]time.Duration{9e9: 5e9, 10e9: 5e9, 12e9: 6e9} {
		if got := j.WorkNow(now); got != want {
			t.Errorf("work at %v is %v, want %v", now, got, want)
		}
	}
	j.Attempt = sched.Stopping
	if got := j.WorkNow(50e9); got != 5*time.Second {
		t.Errorf("work while stopping is %v, want 5s", got)
	}
}

// Ensure that only jobs that wait or run, and that no one wants gone or paused, may be given GPUs.
func TestEligible(t *testing.T) {
	for _, c := range []struct {
		job  sched.Job
		want bool
	}{
		{sched.Job{State: sched.Waiting}, true}, {sched.Job{State: sched.Active}, true},
		{sched.Job{State: sched.Held}, false}, {sched.Job{State: sched.Done}, false},
		{sched.Job{State: sched.Active, Cancel: true}, false}, {sched.Job{State: sched.Active, Paused: true}, false},
	} {
		if got := c.job.Eligible(); got != c.want {
			t.Errorf("%v, cancel %v, paused %v: eligible %v", c.job.State, c.job.Cancel, c.job.Paused, got)
		}
	}
}

// Ensure that a Desired copies the sets it is given, keeps its memory over Reset and wakes at the earliest time asked.
func TestDesired(t *testing.T) {
	var d sched.Desired
	set := []sched.GPUID{1, 2}
	d.Give(3, set, sched.Reason{})
	d.Give(4, nil, sched.Reason{})
	set[0] = 9
	if !slices.Equal(d.Set(&d.Jobs[0]), []sched.GPUID{1, 2}) || len(d.Set(&d.Jobs[1])) != 0 || d.Empty() {
		t.Errorf("sets %v", d.GPUs)
	}
	for _, at := range []sched.Time{sched.Never, 7, 9, 5} {
		d.WakeBy(at)
	}
	if d.Wake != 5 {
		t.Errorf("wakes at %d, want 5", d.Wake)
	}
	if d.Reset(); !d.Empty() || d.Wake != 0 || cap(d.GPUs) == 0 {
		t.Errorf("%+v after Reset", d)
	}
}

// Ensure that every word of the log format has its own name.
func TestWords(t *testing.T) {
	seen := map[string]bool{}
	for k := sched.NoEvent; k < sched.EventKinds; k++ {
		if seen[k.String()] {
			t.Errorf("event word %q twice", k)
		}
		seen[k.String()] = true
	}
	if sched.Ticked.Own() || !sched.Decided.Own() {
		t.Error("the engine's own events start with Decided")
	}
	for c := sched.NoReason; c <= sched.WhyStartFailed; c++ {
		if strings.HasPrefix(c.String(), "reason-") {
			t.Errorf("reason %d has no word", c)
		}
	}
	_ = sched.Cancelled.String() + sched.NodeDown.String() + sched.Held.String() + sched.Stopping.String()
}

// Ensure that capacity counts the GPUs of nodes that are up and not quarantined.
func TestCapacity(t *testing.T) {
	v := sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{GPUs: 2}},
		{Spec: sched.NodeSpec{GPUs: 2}, State: sched.NodeDraining, First: 2}},
		GPUs: []sched.GPU{{}, {Quarantined: true}, {Node: 1}, {Node: 1}}}
	if v.Capacity() != 1 || !v.Usable(0) || v.Usable(1) || v.Usable(2) {
		t.Errorf("capacity %d, want 1", v.Capacity())
	}
}

// Ensure that each wrong field of a node is refused.
func TestNodeSpecValidate(t *testing.T) {
	for _, s := range []sched.NodeSpec{{}, {GPUs: 1, CPUs: -1}, {GPUs: 1, IdleW: -1},
		{GPUs: 1, DollarsHr: sched.Dollars(math.NaN())}} {
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if err := (&sched.NodeSpec{GPUs: 1}).Validate(); err != nil {
		t.Error(err)
	}
}

// Ensure that of a pool whose nodes are paid for from when they join an order alone costs nothing, nor a boot.
func TestPaidFromJoin(t *testing.T) {
	hour := sched.Time(time.Hour)
	for _, c := range []struct {
		name string
		pool sched.Pool
		want sched.Dollars
	}{
		{"ordered, and paid for from the order", sched.Pool{Price: 2, Ordered: 3, Nodes: 1}, 6},
		{"ordered, and refused", sched.Pool{Price: 2, Ordered: 3, Spec: sched.PoolSpec{FromJoin: true}}, 0},
		{"one of three is there", sched.Pool{Price: 2, Ordered: 3, Nodes: 1, Spec: sched.PoolSpec{FromJoin: true}}, 2},
	} {
		if got := c.pool.SpentNow(hour); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for spec, want := range map[sched.PoolSpec]sched.Dollars{
		{Billing: time.Hour, Boot: 30 * time.Minute}:                 2 * 0.25,
		{Billing: time.Hour, Boot: 30 * time.Minute, FromJoin: true}: 2 * 0.75,
	} {
		p := sched.Pool{Price: 2, Spec: spec}
		if p.PayRest(0, sched.Time(15*time.Minute)); p.Spent != want {
			t.Errorf("%+v: the rest costs %v, want %v", spec, p.Spent, want)
		}
	}
}
