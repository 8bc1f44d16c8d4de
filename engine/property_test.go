package engine_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/testsize"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/admit"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// world is one random case: a trace, a cluster, what it does and a system. It is a value that can be printed, shrunk
// and run again; every run builds its stages again, because orders have memory.
type world struct {
	seed    uint64
	jobs    []trace.Job
	inject  []sched.Event
	nodes   []sched.NodeSpec
	pools   []sched.PoolSpec
	share   int // tenants of a GPU; above 0 a sharer decides instead of the system
	types   []string
	failing cluster.Failures
	runtime sim.Runtime
	system  systemCase
}

// systemCase names the stages of a world.
type systemCase struct {
	order, place, admit string
	preempt             bool
	minRun              time.Duration
	guard               sched.Guard
	quantum             time.Duration
	round               time.Duration
	userLimit           int
	block               bool
	keepOrder           bool
	limits              []float64
	seconds             bool
	knob, delta         float64
	classes             *order.Classes
	takes               bool
}

const second = sched.Time(time.Second)

var (
	orderNames = []string{"fifo", "sjf", "srtf", "srsf", "fewest", "las", "mlfq", "gittins", "learned"}
	placeNames = []string{"count", "consolidate", "packed", "yarn", "skew"}
)

// stages builds the system from nothing.
func (w *world) stages() pipeline.Stages {
	c := &w.system
	oracle := (&trace.Trace{Jobs: w.jobs}).Oracle()
	s := pipeline.Stages{Preempt: c.preempt, MinRun: c.minRun, Guard: c.guard, Quantum: c.quantum, Round: c.round,
		UserLimit: c.userLimit,
		Block:     c.block, KeepOrder: c.keepOrder, ClassTakes: c.takes}
	if c.classes != nil {
		s.Class = c.classes
	}
	sample, err := dist.NewEmpirical([]float64{0.5, 1, 2, 4, 4, 9, 20, 60})
	must(err)
	switch c.order {
	case "fifo":
		s.Order = order.FIFO{Alike: c.classes != nil}
	case "sjf":
		s.Order = order.SJF{Work: oracle}
	case "srtf":
		s.Order = order.SRTF{Work: oracle}
	case "srsf":
		s.Order = order.SRSF{Work: oracle}
	case "fewest":
		s.Order = order.FewestGPUs{}
	case "las":
		s.Order = order.LAS{Seconds: c.seconds}
	case "mlfq":
		s.Order, err = order.NewMLFQ(c.limits, c.seconds, c.knob, nil)
	case "gittins":
		s.Order, err = order.NewMLFQ(c.limits, c.seconds, c.knob, order.NewGittinsIndex(sample, c.limits, c.delta))
	case "learned":
		s.Order, err = order.NewLearnedGittins(c.limits, c.seconds, c.knob, c.delta)
	}
	must(err)
	switch c.place {
	case "count":
		s.Place = place.Count{}
	case "consolidate":
		s.Place = place.Consolidate{}
	case "packed":
		s.Place = place.Packed{}
	case "yarn":
		s.Place = place.Yarn{}
	case "skew":
		s.Place = place.Skew{Of: func(m string) (float64, bool) {
			return float64(len(m)) / 10, m != "unknown"
		}, Limit: 0.3}
	}
	switch c.admit {
	case "stop":
		s.Admit = admit.Stop{}
	case "easy":
		s.Admit = &admit.Easy{Work: oracle, Place: s.Place}
	case "quota":
		s.Allocate = allocate.Quota{}
	case "prefix":
		s.Allocate = allocate.Prefix{}
	case "replace":
		s.Allocate, s.Replace, s.Move = allocate.Prefix{}, true, whim{}
	case "elastic":
		s.Allocate = evenly{}
	}
	return s
}

// whim has every third move made, by the GPUs in question alone.
type whim struct{}

func (whim) Worth(_ *sched.View, j sched.JobID, was, now []sched.GPUID) bool {
	sum := int(j)
	for i := range was {
		sum += int(was[i]) + 2*int(now[i])
	}
	return sum%3 == 0
}

// thirds guards two jobs of three for some seconds.
type thirds struct{}

func (thirds) Until(_ *sched.View, j sched.JobID, started sched.Time) sched.Time {
	return started + second*sched.Time(j%3*4)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// newWorld draws a small world. Times are mostly whole seconds and few values, to force ties.
func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{seed: seed, types: []string{"a"}}
	w.drawCluster(r)
	w.drawJobs(r)
	w.drawRuntime(r)
	w.drawSystem(r)
	w.drawInjected(r)
	w.drawPools(r)
	return w
}

func (w *world) drawCluster(r *rand.Rand) {
	size, types := pick(r, 1, 2, 4, 4), pick(r, 1, 1, 1, 2)
	if types == 2 {
		w.types = []string{"a", "b"}
	}
	for i := range 1 + r.IntN(5) {
		n := sched.NodeSpec{Name: fmt.Sprintf("n%d", i), GPUs: size, Type: sched.TypeID(r.IntN(types)),
			Pool: sched.None}
		if i == 0 {
			n.Type = 0
		}
		if r.IntN(5) == 0 {
			n.GPUs = 1 + r.IntN(4)
		}
		if r.IntN(3) == 0 {
			n.Rack = int32(r.IntN(3))
		}
		w.nodes = append(w.nodes, n)
	}
	if r.IntN(6) == 0 {
		w.failing = cluster.Failures{MTBF: 40 * time.Second, Repair: pick(r, 0, time.Second, 7*time.Second),
			Seed: w.seed}
	}
}

func (w *world) drawJobs(r *rand.Rand) {
	at, fine := sched.Time(0), r.IntN(4) == 0
	gpus := 0
	for _, n := range w.nodes {
		gpus += n.GPUs
	}
	for i := range 1 + r.IntN(24) {
		if r.IntN(3) == 0 {
			at += second * sched.Time(r.IntN(6))
			if fine {
				at += sched.Time(r.Int64N(1e9))
			}
		}
		width := pick(r, 1, 1, 2, 2, 3, 4, w.nodes[0].GPUs, 2*w.nodes[0].GPUs, 1+r.IntN(3*w.nodes[0].GPUs), gpus)
		spec := sched.JobSpec{Name: fmt.Sprintf("j%02d", i), Submit: at, GPUs: sched.Rigid(width),
			User: pick(r, "", "ann", "bob", "cy"), Model: pick(r, "", "m", "vgg19", "unknown"),
			Priority: int32(pick(r, 0, 0, 0, 1, -1))}
		if len(w.types) > 1 && r.IntN(2) == 0 {
			spec.Types = spec.Types.With(sched.TypeID(r.IntN(2)))
		}
		if r.IntN(10) == 0 {
			spec.NotBef = at + second*sched.Time(r.IntN(9))
		}
		if i > 0 && r.IntN(10) == 0 {
			spec.After = append(spec.After, sched.JobID(r.IntN(i)))
		}
		d := time.Second * time.Duration(pick(r, 1, 2, 3, 5, 5, 5, 10, 20, 40))
		if fine {
			d += time.Duration(r.Int64N(1e9))
		}
		if r.IntN(30) == 0 {
			d = 0
		}
		w.jobs = append(w.jobs, trace.Job{Spec: spec, Duration: d})
	}
}

func (w *world) drawRuntime(r *rand.Rand) {
	rt := &w.runtime
	rt.Restart = pick(r, 0, 0, time.Second, 1500*time.Millisecond)
	rt.RestartAtFirst = r.IntN(4) == 0
	rt.StartDelay = pick(r, 0, 0, 0, time.Second)
	rt.StopDelay = pick(r, 0, 0, 0, time.Second, 2*time.Second)
	rt.Checkpoint = time.Second
	if r.IntN(4) == 0 {
		rt.Slowdown = func(_ *sched.View, _ *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
			return 1 + 0.3*float64(nodes-need)
		}
	}
	if r.IntN(6) == 0 {
		rt.Penalty = func(width int) time.Duration { return 100 * time.Millisecond * time.Duration(width) }
	}
}

func (w *world) drawSystem(r *rand.Rand) {
	c := &w.system
	c.order, c.place = pick(r, orderNames...), pick(r, placeNames...)
	c.preempt = c.order != "fifo" && c.order != "sjf" || r.IntN(3) == 0
	c.limits = pick(r, nil, []float64{5}, []float64{3, 12}, []float64{1, 2, 30})
	c.seconds = r.IntN(3) == 0
	c.knob = pick(r, 0.0, 2, 4, 8, math.Inf(1))
	c.delta = pick(r, 0, 0, 3.0)
	switch {
	case c.preempt:
		c.minRun = pick(r, 0, 0, 0, 4*time.Second)
	default:
		c.admit = pick(r, "", "stop", "easy")
		c.block = r.IntN(8) == 0
	}
	if rt := &w.runtime; slices.Contains([]string{"mlfq", "gittins", "learned"}, c.order) &&
		(rt.Restart+rt.StartDelay+rt.StopDelay > 0 || rt.Penalty != nil) {
		c.minRun = 4 * time.Second // limits as small as these and a cost of restarts would else go in circles for ever
	}
	if c.order == "las" {
		c.quantum = pick(r, 8*time.Second, 10*time.Second)
	}
	if r.IntN(5) == 0 {
		c.round = pick(r, 6*time.Second, 10*time.Second)
		c.quantum = 0
	}
	switch r.IntN(20) {
	case 0:
		c.keepOrder = true
	case 1:
		c.admit = pick(r, "quota", "prefix", "replace")
	case 2:
		c.admit = pick(r, "easy", "stop")
	}
	if r.IntN(6) == 0 {
		c.userLimit = 1 + r.IntN(8)
	}
	if rand.New(rand.NewPCG(w.seed, 2)).IntN(4) == 0 {
		c.guard = thirds{}
	}
	if r := rand.New(rand.NewPCG(w.seed, 4)); r.IntN(3) == 0 {
		c.classes = &order.Classes{Age: pick(r, 0, 3*time.Second, 10*time.Second, 40*time.Second)}
		c.takes = r.IntN(3) == 0
	}
}

// drawInjected adds commands of users, and nodes and GPUs that are taken out of use for a while.
func (w *world) drawInjected(r *rand.Rand) {
	if r.IntN(3) != 0 {
		return
	}
	for range r.IntN(8) {
		j := sched.JobID(r.IntN(len(w.jobs)))
		at := w.jobs[j].Spec.Submit + 1 + second*sched.Time(r.IntN(12))
		command := pick(r, sched.CancelJob, sched.PauseJob, sched.RequeueJob)
		w.inject = append(w.inject, sched.Event{Time: at, Kind: sched.JobCommanded, Job: j, Code: int32(command)})
		if command == sched.PauseJob { // what is paused is resumed, so that everything ends
			for range 1 + r.IntN(2) {
				at += second * sched.Time(r.IntN(4))
				w.inject = append(w.inject,
					sched.Event{Time: at, Kind: sched.JobCommanded, Job: j, Code: int32(sched.ResumeJob)})
			}
		}
	}
	last := w.inject0()
	if w.failing.MTBF == 0 && r.IntN(2) == 0 {
		n := sched.NodeID(r.IntN(len(w.nodes)))
		at := sched.Time(r.Int64N(int64(last)))
		w.inject = append(w.inject,
			sched.Event{Time: at, Kind: sched.NodeChanged, Node: n, Code: int32(sched.NodeDraining)},
			sched.Event{Time: at + second*5, Kind: sched.NodeChanged, Node: n, Code: int32(sched.NodeUp)})
	}
	if r.IntN(2) == 0 {
		g, at := r.IntN(w.nodes[0].GPUs), sched.Time(r.Int64N(int64(last)))
		w.inject = append(w.inject, sched.Event{Time: at, Kind: sched.GPUChanged, Value: float64(g),
			Code: int32(sched.GPUForeign)},
			sched.Event{Time: at + second*9, Kind: sched.GPUChanged, Value: float64(g), Code: int32(sched.GPUInUse)})
	}
	w.sortInjected()
}

// drawPools lets one world in four rent nodes.
func (w *world) drawPools(r *rand.Rand) {
	if r.IntN(4) != 0 {
		return
	}
	for i := range 1 + r.IntN(2) {
		w.pools = append(w.pools, sched.PoolSpec{Name: fmt.Sprintf("p%d", i), Type: sched.TypeID(r.IntN(len(w.types))),
			GPUs:  pick(r, 1, 2, 4),
			Price: sched.Dollars(r.IntN(4)), Boot: pick(r, 0, time.Second, 5*time.Second), Max: int32(1 + r.IntN(3))})
		w.inject = append(w.inject, sched.Event{Time: second * sched.Time(r.IntN(30)), Kind: sched.PriceChanged,
			Pool: sched.PoolID(i), Value: r.Float64()})
	}
	w.sortInjected()
}

// header starts the log of w.
func (w *world) header() eventlog.Header {
	return eventlog.Header{Types: w.types, Pools: w.pools, ShareLimit: w.share}
}

// renter rents and releases nodes at random, at fixed times, whatever the system wants.
type renter struct {
	noMemory
	seed  uint64
	acted sched.Time // at which it last did
}

// rentEvery is how often a renter acts, until rentUntil.
const (
	rentEvery = 3 * second
	rentUntil = 90 * second
)

func (n *renter) Provision(v *sched.View, d *sched.Desired) {
	if v.Now < rentUntil {
		d.WakeBy(v.Now/rentEvery*rentEvery + rentEvery)
	}
	if v.Now%rentEvery != 0 || v.Now == n.acted || v.Now > rentUntil {
		return
	}
	n.acted = v.Now
	r := rand.New(rand.NewPCG(uint64(v.Now), n.seed))
	for i := range v.Pools {
		p, id := &v.Pools[i], sched.PoolID(i)
		want := int32(r.IntN(int(p.Spec.Max) + 1))
		leave := p.Nodes - want
		for k := range v.Nodes {
			x := &v.Nodes[k]
			if x.Spec.Pool == id && x.State == sched.NodeUp && leave > 0 && idle(v, d, x) {
				leave--
				d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(k), State: sched.NodeGone})
			}
		}
		d.Pools = append(d.Pools, sched.PoolTarget{Pool: id, Count: want + max(leave, 0)})
	}
	if len(v.Nodes) > 1 && r.IntN(3) == 0 { // and one that is owned sleeps or drains for a while
		k := sched.NodeID(r.IntN(len(v.Nodes)))
		switch x := &v.Nodes[k]; {
		case x.Spec.Pool != sched.None || x.State == sched.NodeDown:
		case x.Target != sched.NodeUp || v.Now > rentUntil/2:
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: k, State: sched.NodeUp})
		default:
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: k, State: pick(r, sched.NodeDraining, sched.NodeAsleep)})
		}
	}
	if len(v.GPUs) > 0 {
		g := sched.GPUID(r.IntN(len(v.GPUs)))
		d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: g, Quarantined: r.IntN(2) == 0})
		for g := range v.GPUs {
			if v.Now > rentUntil/2 {
				d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: sched.GPUID(g)})
			}
		}
	}
	if v.Now == rentUntil { // what sleeps is woken, so that everything ends
		for k := range v.Nodes {
			if v.Nodes[k].Spec.Pool == sched.None {
				d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(k), State: sched.NodeUp})
			}
		}
	}
}

// renting has dec rent as well, if w has pools.
func (w *world) renting(dec sched.Decider) sched.Decider {
	if len(w.pools) == 0 {
		return dec
	}
	return pipeline.Compose(dec, pipeline.Parts{Provision: []sched.Provisioner{&renter{seed: w.seed}}})
}

// SaveRest saves the time.
func (n *renter) SaveRest(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n.acted))
}

// LoadRest loads what SaveRest wrote.
func (n *renter) LoadRest(b []byte) error {
	n.acted = sched.Time(binary.LittleEndian.Uint64(b))
	return nil
}

// idle reports whether no job is on the node, nor is to be.
func idle(v *sched.View, d *sched.Desired, n *sched.Node) bool {
	on := func(g sched.GPUID) bool { return n.First <= g && g < n.First+sched.GPUID(n.Spec.GPUs) }
	for g := n.First; on(g); g++ {
		if v.GPUs[g].Targets > 0 || v.GPUs[g].Holders > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(d.GPUs, on)
}

// inject0 returns a time by which something happens still.
func (w *world) inject0() sched.Time { return w.jobs[len(w.jobs)-1].Spec.Submit + 10*second }

func (w *world) sortInjected() {
	slices.SortStableFunc(w.inject, func(a, b sched.Event) int { return int(min(max(a.Time-b.Time, -1), 1)) })
}

// without returns w with job i dropped, and what refers to it.
func (w *world) without(i int) *world {
	x := *w
	x.jobs, x.inject = nil, nil
	for k, j := range w.jobs {
		if k == i {
			continue
		}
		var after []sched.JobID
		for _, a := range j.Spec.After {
			if int(a) != i {
				after = append(after, renumber(a, i))
			}
		}
		j.Spec.After = after
		x.jobs = append(x.jobs, j)
	}
	for _, e := range w.inject {
		if e.Kind == sched.JobCommanded || e.Kind == sched.JobChanged {
			if int(e.Job) == i {
				continue
			}
			e.Job = renumber(e.Job, i)
		}
		x.inject = append(x.inject, e)
	}
	return &x
}

func renumber(j sched.JobID, dropped int) sched.JobID {
	if int(j) > dropped {
		return j - 1
	}
	return j
}

// shrink drops jobs, injected events and features one by one while bad still holds.
func (w *world) shrink(bad func(*world) bool) *world {
	for again := true; again; {
		again = false
		var smaller []*world
		for i := range w.jobs {
			if len(w.jobs) > 1 {
				smaller = append(smaller, w.without(i))
			}
		}
		for i := range w.inject {
			x := *w
			x.inject = slices.Delete(slices.Clone(w.inject), i, i+1)
			smaller = append(smaller, &x)
		}
		for _, f := range []func(*world){
			func(x *world) { x.failing = cluster.Failures{} },
			func(x *world) {
				x.pools, x.inject = nil, slices.DeleteFunc(slices.Clone(x.inject), func(e sched.Event) bool {
					return e.Kind == sched.PriceChanged
				})
			},
			func(x *world) { x.runtime = sim.Runtime{} },
			func(x *world) { x.runtime.StopDelay = 0 },
			func(x *world) { x.runtime.StartDelay = 0 },
			func(x *world) { x.runtime.Restart = 0 },
			func(x *world) { x.system.userLimit = 0 },
			func(x *world) { x.system.round = 0 },
			func(x *world) { x.system.minRun = 0 },
			func(x *world) { x.system.guard = nil },
			func(x *world) { x.system.knob = 0 },
			func(x *world) { x.system.classes, x.system.takes = nil, false },
			func(x *world) { x.system.takes = false },
			func(x *world) { x.system.place = "count" },
			func(x *world) { x.system.limits = nil },
			func(x *world) {
				x.jobs = slices.Clone(x.jobs)
				for i := range x.jobs {
					s := &x.jobs[i].Spec
					s.User, s.Model, s.Priority, s.Types, s.NotBef, s.After = "", "", 0, 0, 0, nil
				}
			},
		} {
			x := *w
			f(&x)
			if x.String() != w.String() {
				smaller = append(smaller, &x)
			}
		}
		for _, x := range smaller {
			if bad(x) {
				w, again = x, true
				break
			}
		}
	}
	return w
}

// String prints all there is to know of a world, for a failure.
func (w *world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d system %+v\nrestart %v/%v start %v stop %v slowdown %v penalty %v failing %+v\n", w.seed,
		w.system, w.runtime.Restart,
		w.runtime.RestartAtFirst, w.runtime.StartDelay, w.runtime.StopDelay, w.runtime.Slowdown != nil,
		w.runtime.Penalty != nil, w.failing)
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "node %s gpus %d type %d rack %d\n", n.Name, n.GPUs, n.Type, n.Rack)
	}
	for _, p := range w.pools {
		fmt.Fprintf(&b, "pool %+v\n", p)
	}
	for i, j := range w.jobs {
		s := &j.Spec
		fmt.Fprintf(&b, "job %d submit %v gpus %d duration %v user %q model %q priority %d types %b not-before %v "+
			"after %v\n",
			i, s.Submit, s.GPUs.Want, j.Duration, s.User, s.Model, s.Priority, s.Types, s.NotBef, s.After)
	}
	for _, e := range w.inject {
		fmt.Fprintf(&b, "inject %v %v job %d code %d node %d gpu %v change %+v\n", e.Time, e.Kind, e.Job, e.Code,
			e.Node, e.Value, e.Change)
	}
	return b.String()
}

// sinkFunc is a Sink made of a function.
type sinkFunc func(v *sched.View, e *sched.Event)

func (f sinkFunc) Log(v *sched.View, e *sched.Event) { f(v, e) }

// run simulates w with decider dec and returns the view at the end.
func (w *world) run(dec sched.Decider, sinks ...eventlog.Sink) (v *sched.View, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	c := &cluster.Cluster{Name: "test", Nodes: w.nodes, Types: w.types, Racks: []string{"", "r1", "r2"},
		Failures: w.failing}
	d, err := sim.New(&trace.Trace{Jobs: w.jobs}, c, sim.Options{Runtime: w.runtime, Inject: w.inject})
	if err != nil {
		return nil, err
	}
	dec = w.renting(dec)
	s := engine.NewState(w.header())
	s.Expect(len(w.jobs))
	n := 0
	limit := sinkFunc(func(_ *sched.View, e *sched.Event) {
		if e.Kind != sched.Ticked { // of which twins have not the same number
			n++
		}
		if n > 20000+40*len(w.jobs) {
			panic("no end")
		}
	})
	err = engine.Run(context.Background(), s, d, dec, engine.Options{Sinks: append(sinks, limit)})
	return s.View(), err
}

// line prints an event as it matters for comparing two runs.
func line(e *sched.Event) string {
	s := fmt.Sprintf("%v #%d %v job %d/%d", e.Time, e.Seq, e.Kind, e.Job, e.Attempt)
	if e.Kind == sched.NodeLeft || e.Kind == sched.NodeJoined || e.Kind == sched.NodeChanged {
		s = fmt.Sprintf("%v #%d %v node %d", e.Time, e.Seq, e.Kind, e.Node)
	}
	if e.GPUs != nil {
		s += fmt.Sprintf(" gpus %v", e.GPUs)
	}
	if e.Code != 0 {
		s += fmt.Sprintf(" code %d", e.Code)
	}
	if e.Outcome != 0 {
		s += fmt.Sprintf(" %v", e.Outcome)
	}
	if e.Work != 0 {
		s += fmt.Sprintf(" work %v", e.Work)
	}
	if e.Why != (sched.Reason{}) {
		s += fmt.Sprintf(" why %v %d %v %v", e.Why.Code, e.Why.Job, e.Why.A, e.Why.B)
	}
	return s + e.Text
}

// transcript collects the lines of a run.
type transcript struct{ lines []string }

func (t *transcript) Log(_ *sched.View, e *sched.Event) { t.lines = append(t.lines, line(e)) }

// hasher folds what matters of each event into one number.
type hasher struct {
	h, n  uint64
	ticks bool // are left out
}

func (h *hasher) add(x uint64) {
	h.h ^= x
	h.h *= 0x9e3779b97f4a7c15
	h.h ^= h.h >> 29
}

func (h *hasher) Log(_ *sched.View, e *sched.Event) {
	if h.ticks && e.Kind == sched.Ticked {
		return
	}
	h.n++
	h.add(uint64(e.Time))
	h.add(uint64(e.Kind)<<32 | uint64(uint32(e.Job)))
	h.add(uint64(uint32(e.Attempt))<<32 | uint64(uint32(e.Code)))
	h.add(uint64(e.Outcome))
	h.add(uint64(e.Why.Code)<<32 | uint64(uint32(e.Why.Job)))
	h.add(math.Float64bits(e.Why.A))
	h.add(math.Float64bits(e.Why.B))
	for _, g := range e.GPUs {
		h.add(uint64(g))
	}
	for _, c := range e.Text {
		h.add(uint64(c))
	}
}

// firstDifference shows where two transcripts part.
func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			from := max(i-15, 0)
			return fmt.Sprintf("common:\n  %s\nfirst:\n  %s\nsecond:\n  %s",
				strings.Join(a[from:min(i, len(a))], "\n  "),
				strings.Join(a[i:min(i+6, len(a))], "\n  "), strings.Join(b[i:min(i+6, len(b))], "\n  "))
		}
	}
	return "no difference"
}

var worlds = flag.Int("worlds", 0,
	"random worlds that each property is tried on; 0: few, ten times as many with -size full")

// cases is how many random worlds a test tries.
func cases(t *testing.T, n int) int {
	if *worlds > 0 {
		return *worlds
	}
	if testing.Short() {
		return n / 10
	}
	return testsize.Times(n, 10)
}

// checker is a Sink that recounts everything after every event and panics with what does not hold.
type checker struct {
	at       sched.Time
	seq      uint64
	up       []bool
	since    []sched.Time
	attained []float64 // by job: the integral of GPUs held while up
	width    []int
	requeued map[sched.JobID]int32 // attempts that must go
	stopped  map[[2]int32]int      // orders to stop, by job and attempt
	ends     map[[2]int32]int
	spent    []float64 // by pool
	rate     []float64 // by pool: per hour
	paid     sched.Time
	blamed   []int // by GPU
	calm     bool  // the next event is the first of a batch
	scripted bool  // refused targets leave jobs as they are, and a report may come late
}

func (c *checker) fail(e *sched.Event, format string, args ...any) {
	panic(fmt.Sprintf("after %s: %s", line(e), fmt.Sprintf(format, args...)))
}

func (c *checker) Log(v *sched.View, e *sched.Event) {
	if c.requeued == nil {
		c.requeued, c.stopped, c.ends = map[sched.JobID]int32{}, map[[2]int32]int{}, map[[2]int32]int{}
	}
	c.suspects(v, e)
	switch {
	case e.Time < c.at:
		c.fail(e, "time falls from %v", c.at)
	case e.Seq != c.seq+1 || v.Version != e.Seq || v.Now != e.Time:
		c.fail(e, "seq %d after %d, version %d, now %v", e.Seq, c.seq, v.Version, v.Now)
	}
	c.seq, c.at = e.Seq, e.Time
	if c.calm {
		c.calm = false
		c.obeyed(v, e)
	}
	c.order(v, e)
	c.recount(v, e)
	c.rented(v, e)
	for id := range v.Jobs {
		c.job(v, sched.JobID(id), e)
	}
}

// obeyed checks that no attempt goes on which its user wanted to go before this batch.
func (c *checker) obeyed(v *sched.View, e *sched.Event) {
	for id := range v.Jobs {
		j, own := &v.Jobs[id], e.Job == sched.JobID(id)
		live := j.Attempt == sched.Starting || j.Attempt == sched.Running
		if live && (j.Cancel || j.Paused || c.requeued[sched.JobID(id)] == j.Attempts) && !own {
			c.fail(e, "job %d goes on: cancelled %v, paused %v", id, j.Cancel, j.Paused)
		}
		if live && !j.Spec.GPUs.Has(len(j.GPUs)) && !own {
			c.fail(e, "job %d goes on with %d GPUs, which are to be %v", id, len(j.GPUs), j.Spec.GPUs)
		}
	}
}

// order checks starts and stops against what users want, dependencies and times.
func (c *checker) order(v *sched.View, e *sched.Event) {
	key := [2]int32{int32(e.Job), e.Attempt}
	switch {
	case e.Kind == sched.JobCommanded && sched.Command(e.Code) == sched.RequeueJob && v.Jobs[e.Job].HoldsDevices():
		c.requeued[e.Job] = v.Jobs[e.Job].Attempts
	case e.Kind == sched.AttemptEnded:
		if c.ends[key]++; c.ends[key] > 1 {
			c.fail(e, "the attempt ends twice")
		}
		delete(c.requeued, e.Job)
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Stop:
		if c.stopped[key]++; c.stopped[key] > 1 {
			c.fail(e, "the attempt is stopped twice")
		}
	case e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.Start:
		j := &v.Jobs[e.Job]
		if j.Cancel || j.Paused || v.Now < j.NotBefore || v.Now < j.Spec.NotBef || !slices.Equal(j.GPUs, j.Target) {
			c.fail(e, "cancelled %v, paused %v, not before %v, holds %v, target %v", j.Cancel, j.Paused, j.NotBefore,
				j.GPUs, j.Target)
		}
		for _, a := range j.Spec.After {
			if v.Jobs[a].State != sched.Done {
				c.fail(e, "starts before job %d is done", a)
			}
		}
		for _, g := range j.GPUs {
			if !v.Usable(g) {
				c.fail(e, "GPU %d is not usable", g)
			}
		}
	}
}

// recount compares the counters of GPUs and nodes with the jobs.
func (c *checker) recount(v *sched.View, e *sched.Event) {
	holders, targets, busy := make([]int16, len(v.GPUs)), make([]int16, len(v.GPUs)), make([]int32, len(v.Nodes))
	heldAlone, alone, trials := make([]int8, len(v.GPUs)), make([]int8, len(v.GPUs)), make([]int8, len(v.GPUs))
	for id := range v.Jobs {
		for _, g := range v.Jobs[id].GPUs {
			if holders[g]++; holders[g] == 1 {
				busy[v.GPUs[g].Node]++
			}
			if v.Jobs[id].Live.Share == sched.Exclusive {
				heldAlone[g]++
			}
		}
		for _, g := range v.Jobs[id].Target {
			targets[g]++
			if v.Jobs[id].Share == sched.Exclusive {
				alone[g]++
			}
			if v.Jobs[id].Trial {
				trials[g]++
			}
		}
	}
	if v.ShareLimit > 1 && e.Kind != sched.Decided {
		c.alone(v, e, targets)
	}
	for g := range v.GPUs {
		gpu := &v.GPUs[g]
		// an exchange is under way
		many := int(holders[g]) > v.ShareLimit || int(targets[g]) > v.ShareLimit && e.Kind != sched.Decided
		if gpu.Holders != holders[g] || gpu.Targets != targets[g] || gpu.HeldAlone != heldAlone[g] ||
			gpu.Alone != alone[g] || gpu.Trials != trials[g] || many {
			c.fail(e, "GPU %d counts %d holders, %d targets, want %d, %d", g, gpu.Holders, gpu.Targets, holders[g],
				targets[g])
		}
	}
	for n := range v.Nodes {
		if v.Nodes[n].Busy != busy[n] {
			c.fail(e, "node %d counts %d busy GPUs, want %d", n, v.Nodes[n].Busy, busy[n])
		}
	}
}

// suspects counts the failed starts in a row that blame a GPU; of three the engine draws its conclusion at once.
func (c *checker) suspects(v *sched.View, e *sched.Event) {
	for len(c.blamed) < len(v.GPUs) {
		c.blamed = append(c.blamed, 0)
	}
	switch e.Kind {
	case sched.StartFailed:
		for _, g := range e.GPUs {
			if v.Jobs[e.Job].StartFailures <= 3 {
				c.blamed[g]++
			}
		}
		return
	case sched.GPUChanged:
		c.blamed[int(e.Value)] = 0 // perhaps
		return
	case sched.AttemptStarted:
		for _, g := range v.Jobs[e.Job].GPUs {
			c.blamed[g] = 0
		}
	case sched.NodeJoined, sched.NodeChanged: // of the latter some
		for g := range v.GPUs {
			if v.GPUs[g].Node == e.Node {
				c.blamed[g] = 0
			}
		}
	case sched.Moved:
		for _, g := range e.GPUs {
			if e.Code == sched.UseGPU || e.Code == sched.QuarantineGPU {
				c.blamed[g] = 0
			}
		}
		if e.Code != sched.RestedGPU { // before that it was too many, perhaps
			return
		}
		for g := range c.blamed {
			c.blamed[g] = min(c.blamed[g], 2)
		}
		return
	}
	for g, n := range c.blamed {
		switch {
		case n < 3 || v.GPUs[g].Quarantined:
		case spare(v, sched.GPUID(g)) > 0:
			c.fail(e, "%d starts in a row failed on GPU %d, which is in use", n, g)
		default: // half of its type is out of use; the next start that blames it is the third again
			c.blamed[g] = 2
		}
	}
}

// spare returns how many more GPUs of the type of one may be out of use for failed starts.
func spare(v *sched.View, of sched.GPUID) (n int) {
	all, out := 0, 0
	for g := range v.GPUs {
		gpu, node := &v.GPUs[g], &v.Nodes[v.GPUs[g].Node]
		if node.Spec.Type == v.Nodes[v.GPUs[of].Node].Spec.Type && node.Open() && gpu.State == sched.GPUInUse {
			if all++; !gpu.Usable() {
				out++
			}
		}
	}
	return all/2 - out
}

// rented checks what pools count and cost against a recount of their nodes, and that no node leaves under a job.
func (c *checker) rented(v *sched.View, e *sched.Event) {
	if e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.SetNode {
		if n, s := &v.Nodes[e.Node], sched.NodeState(e.Value); (s == sched.NodeAsleep || s == sched.NodeGone) &&
			!idle(v, &sched.Desired{}, n) {
			c.fail(e, "node %d is ordered %v and is not empty", e.Node, s)
		}
	}
	for len(c.spent) < len(v.Pools) {
		c.spent, c.rate = append(c.spent, 0), append(c.rate, 0)
	}
	for i := range v.Pools {
		p, nodes := &v.Pools[i], 0
		for k := range v.Nodes {
			if n := &v.Nodes[k]; n.Spec.Pool == sched.PoolID(i) && n.State != sched.NodeDown &&
				n.State != sched.NodeGone {
				nodes++
			}
		}
		c.spent[i] += c.rate[i] * e.Time.Sub(c.paid).Seconds() / 3600
		c.rate[i] = float64(p.Price) * float64(max(nodes, int(p.Ordered)))
		if got := float64(p.SpentNow(e.Time)); int(p.Nodes) != nodes || math.Abs(got-c.spent[i]) > 1e-9*(1+got) {
			c.fail(e, "pool %d counts %d nodes and %v spent, want %d, %v", i, p.Nodes, got, nodes, c.spent[i])
		}
	}
	c.paid = e.Time
}

// alone checks that a job which does not share has its GPUs for itself.
func (c *checker) alone(v *sched.View, e *sched.Event, targets []int16) {
	for id := range v.Jobs {
		for _, g := range v.Jobs[id].Target {
			if v.Jobs[id].Share == sched.Exclusive && targets[g] > 1 {
				c.fail(e, "job %d is not alone on GPU %d", id, g)
			}
			if v.GPUs[g].Trials > 1 {
				c.fail(e, "%d jobs are on trial on GPU %d", v.GPUs[g].Trials, g)
			}
		}
	}
}

// job checks the sets of one job, and its attained service against the integral of what it held.
func (c *checker) job(v *sched.View, id sched.JobID, e *sched.Event) {
	j := &v.Jobs[id]
	for i, set := range [][]sched.GPUID{j.GPUs, j.Target} {
		if len(set) == 0 {
			continue
		}
		// one of another width is to be stopped
		if !j.Spec.GPUs.Has(len(set)) && (i == 1 || slices.Equal(j.GPUs, j.Target)) {
			c.fail(e, "job %d has a split gang %v", id, set)
		}
		for i, g := range set {
			first, typ := v.Nodes[v.GPUs[set[0]].Node].Spec.Type, v.Nodes[v.GPUs[g].Node].Spec.Type
			if i > 0 && g <= set[i-1] || typ != first || !j.Spec.Types.Has(typ) {
				c.fail(e, "job %d has %v: order or types are wrong", id, set)
			}
		}
	}
	switch {
	case (len(j.GPUs) > 0) != j.HoldsDevices() || (j.State == sched.Active) != j.HoldsDevices():
		c.fail(e, "job %d is %v, attempt %v, holds %v", id, j.State, j.Attempt, j.GPUs)
	case len(j.Target) > 0 && (j.State == sched.Done || j.State == sched.Held):
		c.fail(e, "job %d is %v and has target %v", id, j.State, j.Target)
	}
	c.service(id, j, e)
}

func (c *checker) service(id sched.JobID, j *sched.Job, e *sched.Event) {
	for int(id) >= len(c.up) {
		c.up, c.since = append(c.up, false), append(c.since, e.Time)
		c.attained, c.width = append(c.attained, 0), append(c.width, 0)
	}
	if c.up[id] {
		c.attained[id] += float64(c.width[id]) * e.Time.Sub(c.since[id]).Seconds()
	}
	c.up[id], c.since[id], c.width[id] = j.Up, e.Time, len(j.GPUs)
	if got := float64(j.ServiceNow(e.Time)); math.Abs(got-c.attained[id]) > 1e-6*(1+got) {
		c.fail(e, "job %d attained %v, want %v", id, got, c.attained[id])
	}
}

// BeginBatch is called when all that could be done at the last instant was done.
func (c *checker) BeginBatch() { c.calm = true }

// EndBatch has nothing to add.
func (c *checker) EndBatch() error { return nil }

// atEnd returns what is wrong with the view when nothing can come any more.
func (w *world) atEnd(v *sched.View) string {
	if len(v.Jobs) != len(w.jobs) {
		return fmt.Sprintf("%d jobs arrived, want %d", len(v.Jobs), len(w.jobs))
	}
	ledger := sched.NewLedger(v)
	placer := w.stages().Place
	for id := range v.Jobs {
		j := &v.Jobs[id]
		over := w.system.userLimit > 0 && int(j.Spec.GPUs.Want) > w.system.userLimit
		switch fits := placer.Fits(v, ledger, sched.JobID(id), int(j.Spec.GPUs.Want)); {
		case j.State == sched.Done:
			if j.Outcome != sched.Finished && j.Outcome != sched.Cancelled {
				return fmt.Sprintf("job %d ended as %v", id, j.Outcome)
			}
			if j.Outcome == sched.Finished && j.Work != w.jobs[id].Duration {
				return fmt.Sprintf("job %d finished with work %v, want %v", id, j.Work, w.jobs[id].Duration)
			}
		case j.HoldsDevices() || len(j.Target) > 0:
			return fmt.Sprintf("job %d holds %v, target %v at the end", id, j.GPUs, j.Target)
		case fits && j.Eligible() && !over && !w.system.block:
			return fmt.Sprintf("job %d is %v for ever, but would fit", id, j.State)
		case j.State == sched.Held && !slices.ContainsFunc(j.Spec.After, func(a sched.JobID) bool {
			return v.Jobs[a].State != sched.Done
		}):
			return fmt.Sprintf("job %d is held for ever", id)
		}
	}
	return ""
}

func breaks(w *world) bool { return w.broken() != "" }

func (w *world) broken() string {
	v, err := w.run(pipeline.New(w.stages()), &checker{})
	if err != nil {
		return err.Error()
	}
	return w.atEnd(v)
}

// Ensure, after every event of random worlds, that no GPU has two owners, gangs are whole and of one type, counters
// equal a recount, service equals its integral and never falls, nothing starts against its user's request or before its
// time, stops come once; and at the end that every job that fits has finished, whatever nodes failed.
func TestInvariants(t *testing.T) {
	for seed := range uint64(cases(t, 3000)) {
		if w := newWorld(seed); breaks(w) {
			w = w.shrink(breaks)
			var all transcript
			_, err := w.run(pipeline.New(w.stages()), &all)
			t.Fatalf("%v\n%s\n%v\n%s", w, w.broken(), err, strings.Join(all.lines[max(len(all.lines)-40, 0):], "\n"))
		}
	}
}
