package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// recording is a run of one system on a small trace in a world where all goes wrong that can, and what it left.
type recording struct {
	system  string
	keys    map[string]string
	trace   *trace.Trace
	cluster *cluster.Cluster
	inject  []sched.Event
	log     []byte
	sum     string
}

// record runs the system. Everything drawn follows from seed.
func record(t testing.TB, name string, seed uint64) *recording {
	t.Helper()
	rec := &recording{system: name, trace: trace.Testbed(seed), keys: map[string]string{"restart_overhead": "62"}}
	r := rand.New(rand.NewPCG(seed, 77))
	rec.drawJobs(r)
	rec.drawWorld(t, r)
	rec.drawInjected(r)
	if info, err := system.Named(name); err != nil || slices.Contains(info.KeyNames(), "budget") {
		rec.keys["budget"] = "16"
		if strings.HasPrefix(name, "boa") && seed%2 == 0 {
			rec.keys["information"] = "price"
		}
	}
	if seed == 3 {
		rec.rank(len(name)%2 == 1)
	}
	var log bytes.Buffer
	var hash eventlog.Hash
	w := eventlog.NewWriter(&log, eventlog.Header{Version: "test", Origin: "start of the trace", Trace: "testbed",
		System: name, Cluster: rec.cluster.String(), Settings: rec.keys, Seed: seed})
	s := simulate.Request{Trace: rec.trace, Cluster: rec.cluster, System: name, Settings: rec.keys,
		Known:  scoresOf(rec.cluster.GPUs()),
		Inject: rec.inject, Sinks: []eventlog.Sink{w, &hash}}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rec.log, rec.sum = log.Bytes(), hash.Sum()
	return rec
}

// rank has classes count, where the system has any, so that jobs rise in the time that they wait; takes says that
// running jobs give way to them.
func (rec *recording) rank(takes bool) {
	info, err := system.Named(rec.system)
	if err != nil || info.All().Find("priority_age") == nil {
		return
	}
	rec.keys["priority"], rec.keys["priority_age"] = system.PriorityClasses, "600"
	if takes && info.All().Find("priority_preempts") != nil {
		rec.keys["priority_preempts"] = "yes"
	}
	for i := range rec.trace.Jobs {
		rec.trace.Jobs[i].Spec.Priority = int32(i % 3)
	}
}

// scoresOf are PM scores of n GPUs, every third of them slow.
func scoresOf(n int) *variability.Scores {
	s := &variability.Scores{Name: "every third", Classes: []string{"A", "B"},
		PM: [][]float64{make([]float64, n), make([]float64, n)}}
	for g := range n {
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
		s.PM[0][g], s.PM[1][g] = 1+float64(g%3/2)/2, 1
	}
	return s
}

// drawJobs keeps the first jobs, makes them arrive faster, and gives some users, dependencies and times.
func (rec *recording) drawJobs(r *rand.Rand) {
	rec.trace.Jobs = rec.trace.Jobs[:120]
	for i := range rec.trace.Jobs {
		s := &rec.trace.Jobs[i].Spec
		s.Submit /= 3
		s.User = []string{"", "ann", "bob"}[r.IntN(3)]
		if i > 0 && r.IntN(8) == 0 {
			s.After = []sched.JobID{sched.JobID(r.IntN(i))}
		}
		if r.IntN(10) == 0 {
			s.NotBef = s.Submit.Add(time.Duration(r.IntN(1000)) * time.Second)
		}
		s.Retries = int32(r.IntN(3))
		if i%20 == 0 { // some may be resized
			s.GPUs.Min, s.GPUs.Max = 1, max(s.GPUs.Want, 8)
		}
	}
}

func (rec *recording) drawWorld(t testing.TB, r *rand.Rand) {
	c, err := cluster.Load("8x4")
	if err != nil {
		t.Fatal(err)
	}
	c.Failures = cluster.Failures{MTBF: 4 * time.Hour, Repair: 10 * time.Minute, Seed: r.Uint64()}
	rec.cluster = c
	for _, key := range []string{"start_delay", "stop_delay"} {
		if n := r.IntN(3); n > 0 {
			rec.keys[key] = []string{"0.25", "15"}[n-1]
		}
	}
	if strings.HasPrefix(rec.system, "tiresias") && r.IntN(2) == 0 {
		rec.keys["promote_knob"] = "4"
	}
}

// drawInjected draws commands to jobs that have arrived, changes of GPUs, and prices.
func (rec *recording) drawInjected(r *rand.Rand) {
	last := rec.trace.Jobs[len(rec.trace.Jobs)-1].Spec.Submit
	rec.inject = append(rec.inject,
		sched.Event{Kind: sched.PoolChanged, PoolSpec: &sched.PoolSpec{Name: "spot", GPUs: 4, Boot: time.Minute,
			Price: 2, Max: 3}})
	for range 60 {
		job := r.IntN(len(rec.trace.Jobs))
		at := rec.trace.Jobs[job].Spec.Submit.Add(time.Duration(1+r.IntN(3000)) * time.Second)
		e := sched.Event{Time: at, Kind: sched.JobCommanded, Job: sched.JobID(job), Code: int32(1 + r.IntN(4))}
		rec.inject = append(rec.inject, e)
		if e.Code == int32(sched.PauseJob) {
			e.Time, e.Code = at.Add(time.Duration(r.IntN(2000))*time.Second), int32(sched.ResumeJob)
			rec.inject = append(rec.inject, e)
		}
	}
	for range 10 {
		at := sched.Time(r.Int64N(int64(last)))
		gpu := float64(r.IntN(rec.cluster.GPUs()))
		rec.inject = append(rec.inject,
			sched.Event{Time: at, Kind: sched.GPUChanged, Value: gpu, Code: int32(sched.GPUForeign)},
			sched.Event{Time: at.Add(time.Hour), Kind: sched.GPUChanged, Value: gpu, Code: int32(sched.GPUInUse)},
			sched.Event{Time: at, Kind: sched.PriceChanged, Value: r.Float64()})
	}
	for range 40 {
		job := r.IntN(len(rec.trace.Jobs))
		s := &rec.trace.Jobs[job].Spec
		c := s.Change()
		c.GPUs.Want = int32(1 + r.IntN(8))
		c.GPUs.Min, c.GPUs.Max = min(c.GPUs.Min, c.GPUs.Want), max(c.GPUs.Max, c.GPUs.Want)
		if s.GPUs == sched.Rigid(int(s.GPUs.Want)) {
			c.GPUs = sched.Rigid(int(c.GPUs.Want))
		}
		c.Priority = int32(r.IntN(3))
		rec.inject = append(rec.inject, sched.Event{Time: s.Submit.Add(time.Duration(r.IntN(3000)) * time.Second),
			Kind: sched.JobChanged, Job: sched.JobID(job), Change: &c})
	}
	slices.SortStableFunc(rec.inject, func(a, b sched.Event) int { return int(max(-1, min(1, a.Time-b.Time))) })
}

// decider makes the system again.
func (rec *recording) decider(t testing.TB) sched.Decider {
	t.Helper()
	info, err := system.Named(rec.system)
	if err != nil {
		t.Fatal(err)
	}
	sys, err := info.Build(system.Knowledge{Work: rec.trace.Oracle(), Scores: scoresOf(rec.cluster.GPUs()), PerNode: 4,
		MostGPUs: rec.cluster.GPUs()}, key.NewSettings(rec.keys), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sys.Decider
}

// open reads the log again.
func (rec *recording) open(t testing.TB) *eventlog.Reader {
	t.Helper()
	r, err := eventlog.NewReader(bytes.NewReader(rec.log), "log")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func replay(r *eventlog.Reader, dec sched.Decider, o engine.ReplayOptions) error {
	return engine.Replay(context.Background(), r.Header(), r.Records(), dec, o)
}

// seeds is how many random worlds or edits a test tries: n, or with -short a quarter of them.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// Ensure that a recorded log replays to the same log, with every system.
func TestReplay(t *testing.T) {
	for _, info := range system.Table() {
		for seed := range seeds(4) {
			t.Run(fmt.Sprint(info.Name, "/", seed), func(t *testing.T) {
				t.Parallel()
				rec := record(t, info.Name, seed)
				r := rec.open(t)
				var log bytes.Buffer
				var hash eventlog.Hash
				w := eventlog.NewWriter(&log, r.Header())
				if err := replay(r, rec.decider(t),
					engine.ReplayOptions{Sinks: []eventlog.Sink{w, &hash}}); err != nil {
					t.Fatal(err)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(log.Bytes(), rec.log) || hash.Sum() != rec.sum {
					t.Errorf("the log of the replay differs from the log")
				}
			})
		}
	}
}

// Ensure that the log read back has the hash of the run.
func TestReadLogHash(t *testing.T) {
	rec := record(t, "tiresias-las", 1)
	var hash eventlog.Hash
	for line, err := range rec.open(t).Records() {
		if err != nil {
			t.Fatal(err)
		}
		hash.Log(nil, &line.Event)
	}
	if hash.Sum() != rec.sum {
		t.Errorf("hash %s, want %s", hash.Sum(), rec.sum)
	}
}

// Ensure that equal inputs give equal logs, however many processors there are.
func TestSameSeedSameHash(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range []string{"fifo-easy", "srtf", "tiresias-gittins"} {
		want := record(t, name, 5).sum
		for _, procs := range []int{1, 2, 8} {
			runtime.GOMAXPROCS(procs)
			if got := record(t, name, 5).sum; got != want {
				t.Errorf("%s with GOMAXPROCS %d: hash %s, want %s", name, procs, got, want)
			}
		}
		if other := record(t, name, 6).sum; other == want {
			t.Errorf("%s: two seeds with one hash", name)
		}
	}
}

// edit returns rec with line n of its log replaced.
func (rec *recording) edit(n int, f func(line string) string) *recording {
	lines := strings.SplitAfter(string(rec.log), "\n")
	lines[n] = f(lines[n])
	c := *rec
	c.log = []byte(strings.Join(lines, ""))
	return &c
}

// find returns the number of the k-th line that has text.
func (rec *recording) find(t *testing.T, k int, text string) int {
	for i, line := range strings.Split(string(rec.log), "\n") {
		if strings.Contains(line, text) {
			if k--; k == 0 {
				return i
			}
		}
	}
	t.Fatalf("too few lines with %s", text)
	return 0
}

// Ensure that the first decision edited in a log is found and shown.
func TestReplayDivergence(t *testing.T) {
	rec := record(t, "srtf", 2)
	n := rec.find(t, 20, `"event":"decided","job":`)
	var was string
	bad := rec.edit(n, func(line string) string {
		was = line
		return strings.Replace(line, `"gpus":[`, `"gpus":[31,`, 1)
	})
	err := replay(bad.open(t), rec.decider(t), engine.ReplayOptions{})
	var d *engine.Divergence
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want a Divergence", err)
	}
	if d.Seq != uint64(n) || d.Replayed+"\n" != was || !strings.Contains(d.Recorded, `"gpus":[31`) {
		t.Errorf("line %d was %s, got %v", n+1, was, d)
	}
	if !strings.Contains(err.Error(), "\nrecorded: {") || !strings.Contains(err.Error(), "\nreplayed: {") {
		t.Errorf("error %q shows no two lines", err)
	}
}

// Ensure that another system than the one recorded is found out, and so is an event that only one of both logs has.
func TestReplayMissing(t *testing.T) {
	rec := record(t, "srtf", 2)
	other := *rec
	other.system = "fifo"
	var d *engine.Divergence
	if err := replay(rec.open(t), other.decider(t), engine.ReplayOptions{}); !errors.As(err, &d) {
		t.Errorf("another system: got %v, want a Divergence", err)
	}
	cut := *rec
	cut.log = cut.log[:bytes.LastIndex(cut.log[:bytes.LastIndex(cut.log, []byte(`"event":"ordered"`))], []byte("\n"))+1]
	err := replay(cut.open(t), rec.decider(t), engine.ReplayOptions{})
	if !errors.As(err, &d) || d.Recorded != "" || !strings.Contains(d.Replayed, `"ordered"`) {
		t.Errorf("the last order is gone: got %v, want a Divergence that says so", err)
	}
}

// Ensure that a decision which differs in one digit is found out, and so is a last event that the replay does not give.
func TestReplayOfNearlyTheSame(t *testing.T) {
	rec := record(t, "srtf", 2)
	var d *engine.Divergence
	bad := rec.edit(rec.find(t, 20, `"event":"decided","job":`), func(line string) string {
		at := strings.Index(line, `"gpus":[`) + len(`"gpus":[`)
		return line[:at] + string(line[at]^1) + line[at+1:]
	})
	err := replay(bad.open(t), rec.decider(t), engine.ReplayOptions{})
	if !errors.As(err, &d) || len(d.Recorded) != len(d.Replayed) {
		t.Errorf("another GPU: got %v, want a Divergence", err)
	}
	records := rec.open(t).Records()
	var last eventlog.Record
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		last = *r
	}
	more := *rec
	more.log = append(eventlog.AppendEvent(slices.Clone(rec.log), last.Batch, &sched.Event{Seq: last.Event.Seq + 1,
		Time: last.Event.Time, Kind: sched.Noted}), '\n')
	err = replay(more.open(t), rec.decider(t), engine.ReplayOptions{})
	if !errors.As(err, &d) || d.Replayed != "" || !strings.Contains(d.Recorded, `"noted"`) {
		t.Errorf("an event more: got %v, want a Divergence that says so", err)
	}
}

// Ensure that a log which contradicts itself is an error, not a crash.
func TestReplayContradiction(t *testing.T) {
	rec := record(t, "fifo", 3)
	for _, c := range []struct{ event, from, to, want string }{
		{"ended", `"attempt":1`, `"attempt":7`, "the replay differs"},
		{"ended", `"job":`, `"job":9`, "have arrived"},
		{"node-left", `"node":`, `"node":9`, "have joined"},
		{"gpu-changed", `"gpu":`, `"gpu":99`, "of GPU 99"},
		{"arrived", `"gpus":`, `"after":[1000],"gpus":`, "want an earlier one"},
	} {
		n := rec.find(t, 1, `"event":"`+c.event+`"`)
		bad := rec.edit(n, func(line string) string { return strings.Replace(line, c.from, c.to, 1) })
		err := replay(bad.open(t), rec.decider(t), engine.ReplayOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: got %v, want an error with %q", c.event, c.to, err, c.want)
		}
	}
}

// erratic is a Decider that does all a Decider can, much of it wrong, drawing what it does from the version of the
// view: its memory is empty.
type erratic struct{ noMemory }

type noMemory struct{}

func (noMemory) Format() string                         { return "nothing/1" }
func (noMemory) SaveJob(_ sched.JobID, b []byte) []byte { return b }
func (noMemory) SaveRest(b []byte) []byte               { return b }
func (noMemory) LoadJob(sched.JobID, []byte) error      { return nil }
func (noMemory) LoadRest([]byte) error                  { return nil }

func (erratic) Observe(*sched.View, *sched.Event) {}

func (erratic) Decide(v *sched.View, d *sched.Desired) {
	r := rand.New(rand.NewPCG(9, v.Version))
	for id := range v.Jobs {
		if v.Jobs[id].State == sched.Done || r.IntN(3) > 0 {
			continue
		}
		j := sched.JobID(id)
		t := d.Give(j, someGPUs(v, r, int(v.Jobs[id].Spec.GPUs.Want)),
			sched.Reason{Code: sched.ReasonCode(r.IntN(14)), A: r.Float64()})
		t.Batch, t.LRScale, t.Cap, t.Accum = int32(r.IntN(2)), float32(r.IntN(2))*.1, sched.Watts(r.IntN(2)),
			int16(r.IntN(2))
		t.At = sched.Boundary(r.IntN(2))
		d.Watch = append(d.Watch, sched.Watch{Job: j, On: r.IntN(2) == 0})
		d.Notes = append(d.Notes, sched.Note{Job: j, Why: sched.Reason{Code: sched.WhyPromoted, A: r.NormFloat64()}})
		if r.IntN(400) == 0 {
			d.Reject = append(d.Reject, sched.Reject{Job: j, Why: sched.Reason{Code: sched.WhyTooWide}})
		}
	}
	if r.IntN(5) == 0 {
		d.GPUTargets = append(d.GPUTargets,
			sched.GPUTarget{GPU: sched.GPUID(r.IntN(len(v.GPUs))), Quarantined: r.IntN(3) == 0})
	}
	if n := sched.NodeID(r.IntN(len(v.Nodes))); v.Nodes[n].State != sched.NodeDown && r.IntN(5) == 0 {
		d.Nodes = append(d.Nodes,
			sched.NodeTarget{Node: n, State: []sched.NodeState{sched.NodeUp, sched.NodeDraining}[r.IntN(2)]})
	}
	if len(v.Pools) > 0 && r.IntN(5) == 0 {
		d.Pools = append(d.Pools, sched.PoolTarget{Pool: sched.PoolID(r.IntN(8) / 7), Count: int32(r.IntN(5))})
	}
	if len(d.Jobs) > 0 {
		d.Wake = v.Now.Add(time.Duration(1+r.IntN(100)) * time.Second)
	}
}

// someGPUs draws a set of n GPUs in order, or none.
func someGPUs(v *sched.View, r *rand.Rand, n int) (set []sched.GPUID) {
	if r.IntN(4) == 0 || n > len(v.GPUs) {
		return nil
	}
	for _, g := range r.Perm(len(v.GPUs))[:n] {
		set = append(set, sched.GPUID(g))
	}
	slices.Sort(set)
	return set
}

// Ensure that all the engine writes replays, with a Decider that has it write all it can.
func TestReplayErratic(t *testing.T) {
	kinds := make(map[sched.EventKind]int)
	quarantined := 0
	for seed := range uint64(6) {
		rec := recordErratic(t, seed)
		for line, err := range rec.open(t).Records() {
			if err != nil {
				t.Fatal(err)
			}
			if kinds[line.Event.Kind]++; line.Event.Kind == sched.Moved && len(line.Event.GPUs) > 0 {
				quarantined++
			}
		}
		if err := replay(rec.open(t), erratic{}, engine.ReplayOptions{}); err != nil {
			t.Fatal(err)
		}
		var batch uint64
		reload := func(next uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
			if batch = max(batch+1, 2); next != batch {
				t.Errorf("asked before batch %d, want %d", next, batch)
			}
			return erratic{}, memory.Save(v, dec).Load(v, erratic{})
		}
		if err := replay(rec.open(t), erratic{}, engine.ReplayOptions{Swap: reload}); err != nil || batch < 100 {
			t.Fatalf("a new Decider for each of %d batches: %v", batch, err)
		}
	}
	for _, k := range []sched.EventKind{sched.EpochEnded, sched.Refused, sched.Rejected, sched.Noted, sched.Moved,
		sched.NodeChanged, sched.GPUChanged, sched.PoolChanged, sched.PriceChanged} {
		if kinds[k] == 0 {
			t.Errorf("no %v in the logs, want some", k)
		}
	}
	if quarantined == 0 {
		t.Error("no GPU was quarantined, want some")
	}
}

func recordErratic(t *testing.T, seed uint64) *recording {
	t.Helper()
	rec := &recording{trace: trace.Testbed(seed), keys: map[string]string{}}
	r := rand.New(rand.NewPCG(seed, 78))
	rec.drawJobs(r)
	rec.trace.Jobs = rec.trace.Jobs[:30]
	rec.drawWorld(t, r)
	rec.drawInjected(r)
	epoch := func(_ *trace.Job, n int) time.Duration { return time.Duration(n) * 20 * time.Second }
	d, err := sim.New(rec.trace, rec.cluster,
		sim.Options{Inject: rec.inject, Runtime: sim.Runtime{EpochEnd: epoch, StopDelay: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, eventlog.Header{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := func(v *sched.View, _ *sched.Event) {
		if v.Version > 20_000 {
			cancel()
		}
	}
	err = engine.Run(ctx, engine.NewState(eventlog.Header{}), d, erratic{},
		engine.Options{Sinks: []eventlog.Sink{w, logFunc(stop)}})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rec.log = log.Bytes()
	return rec
}

// logFunc is a function as a Sink.
type logFunc func(v *sched.View, e *sched.Event)

func (f logFunc) Log(v *sched.View, e *sched.Event) { f(v, e) }

// Ensure that a Decider which loads what another saved, between any two batches, decides as that other would have.
func TestSaveLoad(t *testing.T) {
	for _, info := range system.Table() {
		for seed := range seeds(4) {
			t.Run(fmt.Sprint(info.Name, "/", seed), func(t *testing.T) {
				t.Parallel() // by far the longest test of this package
				rec := record(t, info.Name, seed)
				for _, every := range []int{1, 7, 50} {
					o := engine.ReplayOptions{Swap: rec.swap(t, every, rand.New(rand.NewPCG(seed, uint64(every))))}
					if err := replay(rec.open(t), rec.decider(t), o); err != nil {
						t.Fatalf("a new Decider about every %d batches: %v", every, err)
					}
				}
			})
		}
	}
}

// swap replaces the Decider by a new one with its memory, once in so many batches.
func (rec *recording) swap(t testing.TB, every int, r *rand.Rand) func(uint64, *sched.View,
	sched.Decider) (sched.Decider, error) {
	return func(_ uint64, v *sched.View, dec sched.Decider) (sched.Decider, error) {
		if r.IntN(every) > 0 {
			return dec, nil
		}
		fresh := rec.decider(t)
		return fresh, memory.Save(v, dec).Load(v, fresh)
	}
}
