package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/manager/whatif"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// world is a random cluster with random jobs and what they do there.
type world struct {
	trace   *trace.Trace
	cluster *cluster.Cluster
	runtime sim.Runtime
	header  eventlog.Header
	scores  *variability.Scores
	stated  bool    // the system knows of the work of jobs what they say; else the truth
	budget  float64 // GPUs rented at most; 0 = as many as there are
	sleep   string  // after so many seconds idle nodes do; "" = never
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{trace: &trace.Trace{}, cluster: &cluster.Cluster{Name: "test", Types: []string{"a", "b"}}}
	types := 1 + r.IntN(2)
	w.cluster.Types = w.cluster.Types[:types]
	for i := range 1 + r.IntN(4) {
		w.cluster.Nodes = append(w.cluster.Nodes, sched.NodeSpec{Name: fmt.Sprint("n", i), GPUs: 1 << r.IntN(3), Type: sched.TypeID(r.IntN(types)),
			Pool: sched.None, IdleW: 100, BusyGPUW: 50})
	}
	at := sched.Time(0)
	for i := range 5 + r.IntN(25) {
		at = at.Add(time.Duration(r.ExpFloat64() * float64(40*time.Second)))
		spec := sched.JobSpec{Name: fmt.Sprint("j", i), User: string(rune('a' + r.IntN(3))), Submit: at, GPUs: sched.Rigid(1 << r.IntN(3)),
			Priority: int32(r.IntN(3)), Share: sched.ShareAllow, Epochs: 10, Util: 0.4, Model: "resnet50"}
		if r.IntN(3) == 0 {
			spec.GPUs = sched.Range{Min: 1, Want: 2, Max: 4}
		}
		if i > 0 && r.IntN(10) == 0 {
			spec.After = []sched.JobID{sched.JobID(r.IntN(i))}
		}
		w.trace.Jobs = append(w.trace.Jobs, trace.Job{Spec: spec, Duration: 1 + time.Duration(r.ExpFloat64()*float64(90*time.Second))})
	}
	pick := func(d time.Duration) time.Duration { return time.Duration(r.IntN(3)) * d }
	w.runtime = sim.Runtime{Restart: pick(3*time.Second + 7), StartDelay: pick(time.Second + 11), StopDelay: pick(2*time.Second + 13),
		Checkpoint: pick(10 * time.Second), RestartAtFirst: r.IntN(2) == 0,
		EpochEnd: func(j *trace.Job, n int) time.Duration { return time.Duration(n) * (j.Duration/10 + 1) }}
	if r.IntN(2) == 0 {
		w.runtime.Penalty = func(width int) time.Duration { return time.Duration(width) * 300 * time.Millisecond }
	}
	if r.IntN(2) == 0 {
		w.runtime.Slowdown = func(_ *sched.View, _ *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
			return 1 + 0.37*float64(nodes-need)
		}
	}
	if r.IntN(2) == 0 {
		w.runtime.Interference = func(_ *trace.Job, others []*trace.Job) float64 { return 1 + 0.21*float64(len(others)) }
	}
	if r.IntN(3) == 0 {
		w.runtime.Changes = []sim.Change{{At: at / 3, GPUs: []sched.GPUID{0}, Factor: 1.7}, {At: at / 2, GPUs: []sched.GPUID{0}, Factor: 1}}
	}
	if r.IntN(3) == 0 {
		w.cluster.Failures = cluster.Failures{MTBF: 10 * time.Minute, Repair: 20 * time.Second, Seed: seed}
	}
	if r.IntN(3) == 0 { // what boots begins anew after a cut, so nothing takes time to
		w.cluster.Pools = []cluster.Pool{{PoolSpec: sched.PoolSpec{Name: "spot", GPUs: 2, Max: 4, Price: 1}}}
	}
	if r.IntN(2) == 0 {
		w.sleep = "25"
	}
	w.scores = scoresOf(w.cluster.MostGPUs(), r)
	w.header = eventlog.Header{Types: w.cluster.Types, Pools: w.cluster.PoolSpecs()}
	return w
}

// stated is what jobs say of their work.
type stated struct{}

func (stated) Remaining(v *sched.View, j sched.JobID) time.Duration {
	return max(v.Job(j).Spec.WallTime-v.Job(j).WorkNow(v.Now), 0)
}

// knows is the truth about the jobs of a trace. Of one that is handed in again on a copy it knows nothing: an hour.
type knows struct {
	trace.Oracle
	jobs int
}

func (k knows) Remaining(v *sched.View, j sched.JobID) time.Duration {
	if int(j) < k.jobs {
		return k.Oracle.Remaining(v, j)
	}
	return time.Hour
}

func scoresOf(gpus int, r *rand.Rand) *variability.Scores {
	s := &variability.Scores{Name: "test", Classes: []string{"A"}, PM: [][]float64{make([]float64, gpus)}}
	for g := range gpus {
		s.PM[0][g] = 1 + float64(r.IntN(4))/10
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
	}
	return s
}

// system makes Deciders of the named system that know what an oracle tells; ok is false if it needs more.
func (w *world) system(name string) (fresh whatif.System, shareLimit int, ok bool) {
	info, err := system.Named(name)
	if err != nil {
		return nil, 0, false
	}
	set := map[string]string{}
	for _, k := range info.Keys {
		if k.Name == "quantum" {
			set["quantum"] = "30"
		}
	}
	if w.sleep != "" {
		set["sleep"] = w.sleep
	}
	if w.budget > 0 {
		set["max_gpus"] = fmt.Sprint(int(w.budget))
	}
	build := func() (system.System, error) {
		most := w.cluster.MostGPUs()
		k := system.Knowledge{Work: knows{w.trace.Oracle(), len(w.trace.Jobs)}, Types: w.cluster.Types, PerNode: 4, MostGPUs: most, Scores: w.scores,
			Pools: w.cluster.PoolSpecs(), Budget: float64(most) / 2}
		if w.stated {
			k.Work = stated{}
		}
		return info.Build(k, system.NewSettings(set), nil)
	}
	sys, err := build()
	if err != nil {
		return nil, 0, false
	}
	return func() (sched.Decider, error) {
		s, err := build()
		return s.Decider, err
	}, sys.ShareLimit, true
}

func (w *world) driver(t testing.TB) *sim.Driver {
	t.Helper()
	d, err := sim.New(w.trace, w.cluster, sim.Options{Runtime: w.runtime})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cutter takes a moment when so many batches are over, or with the first at a time.
type cutter struct {
	w      *world
	v      *sched.View
	dec    sched.Decider
	fresh  whatif.System
	after  int
	at     sched.Time // 0 = after counts
	moment *whatif.Moment
	err    error
}

func (c *cutter) Log(v *sched.View, _ *sched.Event) { c.v = v }
func (c *cutter) BeginBatch()                       {}
func (c *cutter) EndBatch() error {
	if c.after--; c.v != nil && c.after == 0 || c.v != nil && c.at > 0 && c.v.Now >= c.at && c.moment == nil {
		c.moment, c.err = whatif.Take(c.w.header, c.v, c.dec, c.fresh)
	}
	return c.err
}

// history writes down all that became of jobs and nodes, in order.
type history struct {
	all  []string
	seqs []uint64
	// noRates leaves out how fast attempts are: one that finds its GPUs slow is told so at once in a fork, a moment later in
	// a run that nobody was there to notice in. What comes of it must be the same.
	noRates bool
	over    int // events up to the last end of an attempt
}

// since returns what came after event seq, in order of its words: those of an instant that are of one kind may change
// places, for the view does not tell in which order starts were ordered. What nodes do when all jobs are over is left out.
func (h *history) since(seq uint64) []string {
	at, _ := slices.BinarySearch(h.seqs, seq+1)
	return slices.Sorted(slices.Values(h.all[min(at, h.over):h.over]))
}

func (h *history) Log(v *sched.View, e *sched.Event) {
	if e.Kind == sched.Ticked || h.noRates && (e.Kind == sched.AttemptStarted || e.Kind == sched.Progressed) {
		return
	}
	h.seqs = append(h.seqs, e.Seq)
	if e.Kind == sched.AttemptEnded {
		defer func() { h.over = len(h.all) }()
	}
	h.all = append(h.all, fmt.Sprintf("%20d ", e.Time)+fmt.Sprint(e.Kind, " ", e.Job, " ", e.Attempt, " ", e.Outcome, " ", e.Work, " ", e.WorkFrom, " ", e.Rate,
		" ", e.Node, " ", e.Code, " ", e.Value, " ", e.GPUs))
}

// Ensure that a simulation cut at any instant and gone on with from the view and the saved memory tells the same story to
// the end as one that was never cut: every event, at the same nanosecond.
func TestForkGoesOnAsTheOriginal(t *testing.T) {
	cuts := map[string]int{}
	for seed := range uint64(12) {
		for _, name := range system.Names() {
			w := newWorld(seed)
			fresh, limit, ok := w.system(name)
			if !ok {
				continue // boa has one type of GPU only
			}
			w.header.ShareLimit = max(limit, 1)
			if err := cutOnce(t, w, fresh, seed); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			cuts[name]++
		}
	}
	for _, name := range system.Names() {
		if cuts[name] == 0 {
			t.Errorf("%s was never cut", name)
		}
	}
}

func cutOnce(t *testing.T, w *world, fresh whatif.System, seed uint64) error {
	batches := &counter{}
	dec, _ := fresh()
	whole := &history{noRates: w.runtime.Changes != nil}
	err := engine.Run(t.Context(), engine.NewState(w.header), w.driver(t), dec, engine.Options{Sinks: []eventlog.Sink{batches, whole}})
	if err != nil || batches.n < 3 {
		return err
	}
	c := &cutter{w: w, fresh: fresh, after: 1 + rand.New(rand.NewPCG(seed, 2)).IntN(batches.n-1)}
	c.dec, _ = fresh()
	whole = &history{noRates: w.runtime.Changes != nil}
	err = engine.Run(t.Context(), engine.NewState(w.header), w.driver(t), c.dec, engine.Options{Sinks: []eventlog.Sink{c, whole}})
	if err != nil {
		return err
	}
	if c.moment == nil {
		return errors.New("never cut")
	}
	rest := &history{noRates: w.runtime.Changes != nil}
	err = c.moment.GoOn(context.Background(), w.driver(t), rest)
	if err != nil {
		return err
	}
	return sameStory(whole.since(c.moment.View().Version), rest.since(0))
}

func sameStory(want, got []string) error {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			return fmt.Errorf("event %d of %d, want %d in all\nfork  %s\nwhole %s", i, len(got), len(want), at(got, i), at(want, i))
		}
	}
	return nil
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

type counter struct{ n int }

func (c *counter) Log(*sched.View, *sched.Event) {}
func (c *counter) BeginBatch()                   {}
func (c *counter) EndBatch() error               { c.n++; return nil }
