package metrics_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

const second = sched.Time(time.Second)

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// history is a random run: what is simulated, and who decides.
type history struct {
	jobs    []trace.Job
	cluster cluster.Cluster
	pools   []sched.PoolSpec
	options sim.Options
	stages  pipeline.Stages
	seed    uint64
	shares  bool
}

func newHistory(seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 9))
	h := &history{seed: seed, shares: seed%2 == 1,
		cluster: cluster.Cluster{Name: "test", Types: []string{"a"}, Racks: []string{""}}}
	gpus := 0
	for i := range 1 + r.IntN(4) {
		n := sched.NodeSpec{Name: fmt.Sprint("n", i), GPUs: 1 + r.IntN(4), Pool: sched.None,
			IdleW:    sched.Watts(100 * r.Float64()),
			BusyGPUW: sched.Watts(300 * r.Float64()), SleepW: sched.Watts(9 * r.Float64()),
			DollarsHr: sched.Dollars(5 * r.Float64())}
		drawPower(r, &n)
		h.cluster.Nodes = append(h.cluster.Nodes, n)
		gpus += n.GPUs
	}
	if r.IntN(2) == 0 {
		h.cluster.Failures = cluster.Failures{MTBF: pick[time.Duration](r, 20, 60, 300) * time.Second,
			Repair: pick[time.Duration](r, 0, 3, 11) * time.Second, Seed: seed}
	}
	at := 7 * second * sched.Time(r.IntN(2))
	for i := range 1 + r.IntN(14) {
		at += second * sched.Time(r.IntN(9)) * sched.Time(r.IntN(2))
		spec := sched.JobSpec{Name: fmt.Sprint(i), Submit: at, Share: sched.ShareAllow,
			GPUs: sched.Rigid(1 + r.IntN(max(gpus+r.IntN(2), 1)))}
		if r.IntN(2) == 0 {
			spec.Util = float32(1+r.IntN(9)) / 10
		}
		if r.IntN(3) == 0 {
			spec.Deadline = at + second*sched.Time(r.IntN(40))
		}
		job := trace.Job{Spec: spec, Duration: time.Duration(r.Int64N(30e9)),
			Saves: pick(r, trace.SavingUnknown, trace.SavesWork, trace.LosesWork)}
		if job.Saves == trace.LosesWork {
			job.Duration %= 4 * time.Second // longer ones might never end
		}
		job.Spec.Saves = job.Saves == trace.SavesWork
		h.jobs = append(h.jobs, job)
	}
	h.options.Runtime = sim.Runtime{Restart: pick[time.Duration](r, 0, 1, 2) * time.Second,
		StartDelay: pick[time.Duration](r, 0, 0, 1) * time.Second,
		StopDelay:  pick[time.Duration](r, 0, 0, 1500) * time.Millisecond, Checkpoint: time.Second,
		RestartAtFirst: r.IntN(4) == 0, Boot: pick[time.Duration](r, 0, 2) * time.Second}
	h.stages = pipeline.Stages{Order: order.SRTF{Work: (&trace.Trace{Jobs: h.jobs}).Oracle()}, Place: place.Packed{},
		Preempt: true}
	if r.IntN(2) == 0 {
		o, err := order.NewMLFQ([]float64{4, 20}, false, 3, nil)
		if err != nil {
			panic(err)
		}
		h.stages.Order, h.stages.MinRun = o, 5*time.Second
	}
	if r.IntN(2) == 0 {
		h.pools = []sched.PoolSpec{{Name: "p", GPUs: 1 + r.IntN(3), Price: sched.Dollars(r.Float64()),
			Boot: 2 * time.Second, Max: 3}}
	}
	h.drawInjected(r, at)
	return h
}

// decider returns who decides: a pipeline that lets nodes sleep, or one that shares GPUs.
func (h *history) decider(naps int) sched.Decider {
	n := &napper{pipeline.New(h.stages), naps}
	if h.shares {
		n.Decider = &sharer{rand.New(rand.NewPCG(h.seed, 3)), 300}
	}
	return n
}

func (h *history) drawInjected(r *rand.Rand, last sched.Time) {
	in := &h.options.Inject
	for range r.IntN(6) {
		j := r.IntN(len(h.jobs))
		at := h.jobs[j].Spec.Submit + 1 + second*sched.Time(r.IntN(30))
		*in = append(*in, sched.Event{Time: at, Kind: sched.JobCommanded, Job: sched.JobID(j),
			Code: int32(pick(r, sched.CancelJob, sched.PauseJob, sched.RequeueJob, sched.ResumeJob))})
	}
	if h.cluster.Failures.MTBF == 0 {
		n, at := sched.NodeID(r.IntN(len(h.cluster.Nodes))), sched.Time(r.Int64N(int64(last+20*second)))
		for i, s := range []sched.NodeState{sched.NodeDraining, sched.NodeUp, sched.NodeDraining} {
			*in = append(*in, sched.Event{Time: at + 6*second*sched.Time(i), Kind: sched.NodeChanged, Node: n,
				Code: int32(s)})
		}
	}
	for range 3 {
		*in = append(*in, sched.Event{Time: sched.Time(r.Int64N(int64(last + 20*second))), Kind: sched.PriceChanged,
			Value: 5 * r.Float64()})
	}
	for range r.IntN(6) {
		n := sched.NodeID(r.IntN(len(h.cluster.Nodes)))
		*in = append(*in, sched.Event{Time: sched.Time(r.Int64N(int64(last + 20*second))), Kind: sched.PriceChanged,
			Pool: sched.None, Node: max(n-1, sched.None), Value: 5 * r.Float64()},
			sched.Event{Time: sched.Time(r.Int64N(int64(last + 20*second))), Kind: sched.Measured, Job: sched.None,
				Node: n, Value: 900 * r.Float64()})
	}
	// long after all is over
	*in = append(*in, sched.Event{Time: last + 1000*second, Kind: sched.Measured, Job: sched.None, Value: 3})
	slices.SortStableFunc(*in, func(a, b sched.Event) int { return int(min(max(a.Time-b.Time, -1), 1)) })
}

// napper decides as the system it holds does, and rejects a job, lets idle nodes sleep and wakes them now and then.
type napper struct {
	sched.Decider
	naps int // left
}

// Decide adds its own to what the system wants.
func (n *napper) Decide(v *sched.View, d *sched.Desired) {
	n.Decider.Decide(v, d)
	asleep, waits := false, false
	n.rent(v, d)
	for i := range v.Jobs {
		waits = waits || v.Jobs[i].State == sched.Waiting
		if n.naps > 0 && i%7 == 6 && v.Jobs[i].State == sched.Waiting && len(v.Jobs[i].Target) == 0 &&
			v.Version%2 == 0 && !gives(d, sched.JobID(i)) {
			d.Reject = append(d.Reject, sched.Reject{Job: sched.JobID(i), Why: sched.Reason{Code: sched.WhyQuota}})
		}
	}
	for i := range v.Nodes {
		node := &v.Nodes[i]
		asleep = asleep || node.State == sched.NodeAsleep
		switch {
		case n.naps > 0 && node.State == sched.NodeUp && node.Spec.Pool == sched.None && v.Version%3 == 0 &&
			!wanted(v, d, node):
			n.naps--
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeAsleep})
		case node.State == sched.NodeAsleep && (waits || v.Version%5 == 1):
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeUp})
		}
	}
	if asleep && waits {
		d.WakeBy(v.Now + second)
	}
}

// rent has a pool grow and shrink with the version.
func (n *napper) rent(v *sched.View, d *sched.Desired) {
	if len(v.Pools) == 0 || v.Version%7 != 0 {
		return
	}
	want := int32(v.Version / 7 % 4)
	leave := v.Pools[0].Nodes - want
	for i := range v.Nodes {
		if x := &v.Nodes[i]; x.Spec.Pool == 0 && x.State == sched.NodeUp && leave > 0 && !wanted(v, d, x) {
			leave--
			d.Nodes = append(d.Nodes, sched.NodeTarget{Node: sched.NodeID(i), State: sched.NodeGone})
		}
	}
	d.Pools = append(d.Pools, sched.PoolTarget{Pool: 0, Count: want + max(leave, 0)})
}

// wanted reports whether a job is on the node, or is to be.
func wanted(v *sched.View, d *sched.Desired, n *sched.Node) bool {
	on := func(g sched.GPUID) bool { return n.First <= g && g < n.First+sched.GPUID(n.Spec.GPUs) }
	for g := range v.GPUs {
		if on(sched.GPUID(g)) && v.GPUs[g].Targets > 0 {
			return true
		}
	}
	return n.Busy > 0 || slices.ContainsFunc(d.GPUs, on)
}

func gives(d *sched.Desired, j sched.JobID) bool {
	return slices.ContainsFunc(d.Jobs, func(t sched.Target) bool { return t.Job == j })
}

// limit stops a run that does not end.
type limit struct {
	t    *testing.T
	left int
	stop context.CancelFunc
}

// Log counts.
func (l *limit) Log(*sched.View, *sched.Event) {
	if l.left--; l.left == 0 {
		l.t.Error("no end")
		l.stop()
	}
}

func (h *history) run(t *testing.T, naps int) (*metrics.Recorder, *books) {
	t.Helper()
	d, err := sim.New(&trace.Trace{Jobs: h.jobs}, &h.cluster, h.options)
	if err != nil {
		t.Fatal(err)
	}
	rec, b := metrics.NewRecorder(0), &books{}
	rec.Energy = metrics.Energy{Price: prices(), Carbon: constant("grams", "400")}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := engine.Options{Sinks: []eventlog.Sink{rec, b, &limit{t, 20000, stop}}}
	if err := engine.Run(ctx, engine.NewState(eventlog.Header{Pools: h.pools, ShareLimit: 3}), d, h.decider(naps),
		o); err != nil {
		t.Fatal(err)
	}
	return rec, b
}

// Ensure that every figure of a run equals what a plain list of what happened adds up to, on random histories with node
// failures, draining and sleeping nodes, delays, restarts, rejections and commands of users.
func TestRecorderAgainstBooks(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(250) {
		rec, b := newHistory(seed).run(t, 9*int(seed%3/2))
		compare(t, seed, rec, b)
		seen["asleep"], seen["down"] = seen["asleep"]+b.left[sched.NodeAsleep], seen["down"]+b.left[sched.NodeDown]
		seen["lost"] += int(b.lost)
		seen["rented"] += b.rented
		for what, n := range b.seen {
			seen[what] += n
		}
		for i := range b.jobs {
			seen[b.jobs[i].outcome.String()]++
			seen["preempted"] += int(b.jobs[i].preemptions)
			seen["promoted"] += int(b.jobs[i].promotions)
			if b.jobs[i].missed {
				seen["missed"]++
			}
			if b.jobs[i].lost.lost > 0 {
				seen["losing"]++
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, what := range []string{"", "finished", "cancelled", "rejected", "preempted", "promoted", "missed", "asleep",
		"down", "lost", "rented", "shared", "capped", "waking", "metered", "repriced", "losing"} {
		if seen[what] < 10 {
			t.Errorf("%d of %q in all histories: too few to say anything", seen[what], what)
		}
	}
}

func compare(t *testing.T, seed uint64, rec *metrics.Recorder, b *books) {
	t.Helper()
	got, sum := rec.Result("x"), b.add()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*max(math.Abs(want), 1e-9) {
			t.Errorf("seed %d: %s %v, want %v", seed, what, got, want)
		}
	}
	share := func(part, whole float64) float64 {
		if whole == 0 {
			return 0
		}
		return part / whole
	}
	near("gpu_allocated", got.GPUAllocated, share(sum.held, sum.usable))
	near("gpu_busy", got.GPUBusy, share(sum.work, sum.usable))
	near("avg_active_nodes", got.AvgActiveNodes, share(sum.active, sum.span))
	near("avg_rented_gpus", got.AvgRentedGPUs, share(sum.usable, sum.span))
	near("gpu_hours", got.GPUHours, sum.held/3600)
	near("energy_kwh", got.EnergyKWh, sum.all/3.6e6)
	near("cost", got.Cost, sum.cost)
	jobs := 0.0
	for i := range rec.Jobs {
		near(fmt.Sprintf("energy of job %d", i), float64(rec.Jobs[i].Energy), sum.drawn[i])
		jobs += float64(rec.Jobs[i].Energy)
	}
	near("energy of jobs", jobs, got.EnergyBusy*3.6e6)
	near("energy_idle_kwh", got.EnergyIdle, sum.idle/3.6e6)
	near("energy_sleep_kwh", got.EnergySleep, sum.sleep/3.6e6)
	near("energy of jobs, idle and sleep", jobs+sum.idle+sum.sleep, sum.all)
	near("energy_cost", got.EnergyCost, sum.price)
	near("carbon_g", got.Carbon, 400*sum.all/3.6e6)
	if failures := b.failures(); got.NodeFailures != failures || got.AttemptsLost != b.lost {
		t.Errorf("seed %d: %d node failures, %d attempts lost, want %d, %d", seed, got.NodeFailures, got.AttemptsLost,
			failures, b.lost)
	}
	if got.Events != b.events {
		t.Errorf("seed %d: %d events, want %d", seed, got.Events, b.events)
	}
	if got.GPUAllocated > 1 || got.GPUBusy > got.GPUAllocated*(1+1e-12) {
		t.Errorf("seed %d: allocated %v, busy %v, want busy <= allocated <= 1", seed, got.GPUAllocated, got.GPUBusy)
	}
	compareJobs(t, seed, rec, b)
	compareSums(t, seed, got, b, sum.end, near)
}

func compareJobs(t *testing.T, seed uint64, rec *metrics.Recorder, b *books) {
	t.Helper()
	for i := range rec.Jobs {
		j, l := &rec.Jobs[i], &b.jobs[i]
		want := metrics.Job{Name: j.Name, GPUs: j.GPUs, Submit: l.submit, Start: l.start, Finish: l.finish, Run: l.run,
			Service: j.Service,
			Energy:  j.Energy, Lost: j.Lost, Preemptions: l.preemptions, Promotions: l.promotions,
			Migrations: l.migrations, Resizes: l.resizes, Outcome: l.outcome}
		if *j != want {
			t.Errorf("seed %d: job %d:\n got %+v\nwant %+v", seed, i, *j, want)
		}
		if service := float64(j.GPUs) * l.run.Seconds(); math.Abs(float64(j.Service)-service) > 1e-9*service {
			t.Errorf("seed %d: job %d: service %v, want %v", seed, i, j.Service, service)
		}
		if lost := float64(j.GPUs) * l.lost.lost; math.Abs(float64(j.Lost)-lost) > 1e-6*max(lost, 1) {
			t.Errorf("seed %d: job %d: lost %v, want %v", seed, i, j.Lost, lost)
		}
		if l.outcome == sched.Finished && j.Queue()+j.Run != j.JCT() {
			t.Errorf("seed %d: job %d: queue %v + run %v, want jct %v", seed, i, j.Queue(), j.Run, j.JCT())
		}
	}
}

func compareSums(t *testing.T, seed uint64, got metrics.Result, b *books, end sched.Time,
	near func(string, float64, float64)) {
	t.Helper()
	var jcts []float64
	var rejected, unfinished int
	var run, queue, wait, last, product float64
	var preempted, promoted, migrated, resized, missed int64
	first := math.Inf(1)
	for i := range b.jobs {
		l := &b.jobs[i]
		preempted, promoted = preempted+int64(l.preemptions), promoted+int64(l.promotions)
		migrated, resized = migrated+int64(l.migrations), resized+int64(l.resizes)
		if l.missed {
			missed++
		}
		first = min(first, l.submit.Seconds())
		until := l.finish
		switch l.outcome {
		case sched.Finished:
			jct := l.finish.Sub(l.submit).Seconds()
			jcts = append(jcts, jct)
			run, queue, last = run+l.run.Seconds(), queue+jct-l.run.Seconds(), max(last, l.finish.Seconds())
			product += math.Log(max(jct, 1e-9))
		case sched.RejectedJob:
			rejected++
			continue
		case sched.NoOutcome:
			unfinished++
			until = end
		}
		wait = max(wait, (until.Sub(l.submit) - l.run).Seconds())
	}
	if got.Jobs != len(b.jobs) || got.Finished != len(jcts) || got.Rejected != rejected ||
		got.Unfinished != unfinished {
		t.Errorf("seed %d: jobs %d, finished %d, rejected %d, unfinished %d, want %d, %d, %d, %d", seed,
			got.Jobs, got.Finished, got.Rejected, got.Unfinished, len(b.jobs), len(jcts), rejected, unfinished)
	}
	if is, want := [...]int64{got.Preemptions, got.Promotions, got.Migrations, got.Resizes, got.DeadlineMisses},
		[...]int64{preempted, promoted, migrated, resized, missed}; is != want {
		t.Errorf("seed %d: preemptions, promotions, migrations, resizes, misses %d, want %d", seed, is, want)
	}
	near("max_wait_s", got.MaxWait, wait)
	if len(jcts) == 0 {
		near("figures of no job", got.AvgJCT+got.GeomeanJCT+got.P50JCT+got.P99JCT+got.AvgQueue+got.AvgRun+got.Makespan,
			0)
		return
	}
	n, sum := float64(len(jcts)), 0.0
	for _, x := range jcts {
		sum += x
	}
	slices.Sort(jcts)
	near("avg_jct_s", got.AvgJCT, sum/n)
	near("geomean_jct_s", got.GeomeanJCT, math.Exp(product/n))
	near("avg_run_s", got.AvgRun, run/n)
	if math.Abs(got.AvgQueue-queue/n) > 1e-9*sum/n {
		t.Errorf("seed %d: avg_queue_s %v, want %v", seed, got.AvgQueue, queue/n)
	}
	near("avg_queue_s + avg_run_s", got.AvgQueue+got.AvgRun, got.AvgJCT)
	near("makespan_s", got.Makespan, last-first)
	for percent, p := range map[int]float64{50: got.P50JCT, 95: got.P95JCT, 99: got.P99JCT} {
		near(fmt.Sprint("percentile ", percent), p, jcts[(len(jcts)*percent+99)/100-1])
	}
}
