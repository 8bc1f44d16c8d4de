package whatiftest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
	"github.com/trainyard/trainyard/whatif"
)

// Managed makes Deciders of the named system that know nothing but what they learn, as those of a manager.
func (w *World) Managed(t *testing.T, name string) whatif.System {
	t.Helper()
	info, err := system.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	build := func() (system.System, error) {
		k := system.Knowledge{Work: remaining.New(), Types: w.Cluster.Types, PerNode: 8, MostGPUs: 32, Scores: w.Scores}
		return info.Build(k, key.NewSettings(nil), nil)
	}
	s, err := build()
	if err != nil {
		t.Fatal(err)
	}
	w.Header.ShareLimit = max(s.ShareLimit, 1)
	return func() (sched.Decider, error) {
		again, err := build()
		return again.Decider, err
	}
}

// Live makes Deciders of the system of the header as those of a manager, with its settings for real jobs, which know
// nothing but what they learn.
func (w *World) Live(t testing.TB) whatif.System {
	t.Helper()
	build := func() (system.System, error) {
		h := w.Header
		s, err := system.Live(&h, system.Knowledge{})
		return s, err
	}
	s, err := build()
	if err != nil {
		t.Fatal(err)
	}
	w.Header.ShareLimit = max(s.ShareLimit, 1)
	return func() (sched.Decider, error) {
		again, err := build()
		return again.Decider, err
	}
}

// World is a random cluster with random jobs and what they do there.
type World struct {
	Trace   *trace.Trace
	Cluster *cluster.Cluster
	Runtime sim.Runtime
	Header  eventlog.Header
	Scores  *variability.Scores
	stated  bool    // the system knows of the work of jobs what they say; else the truth
	Budget  float64 // GPUs rented at most; 0 = as many as there are
	Sleep   string  // after so many seconds idle nodes do; "" = never
}

// NewWorld draws a world; the same seed draws the same one.
func NewWorld(seed uint64) *World {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &World{Trace: &trace.Trace{}, Cluster: &cluster.Cluster{Name: "test", Types: []string{"a", "b"}}}
	types := 1 + r.IntN(2)
	w.Cluster.Types = w.Cluster.Types[:types]
	for i := range 1 + r.IntN(4) {
		w.Cluster.Nodes = append(w.Cluster.Nodes, sched.NodeSpec{Name: fmt.Sprint("n", i), GPUs: 1 << r.IntN(3),
			Type: sched.TypeID(r.IntN(types)),
			Pool: sched.None, IdleW: 100, BusyGPUW: 50})
	}
	at := sched.Time(0)
	for i := range 5 + r.IntN(25) {
		at = at.Add(time.Duration(r.ExpFloat64() * float64(40*time.Second)))
		spec := sched.JobSpec{Name: fmt.Sprint("j", i), User: string(rune('a' + r.IntN(3))), Submit: at,
			GPUs:     sched.Rigid(1 << r.IntN(3)),
			Priority: int32(r.IntN(3)), Share: sched.ShareAllow, Epochs: 10, Util: 0.4, Model: "resnet50"}
		if r.IntN(3) == 0 {
			spec.GPUs = sched.Range{Min: 1, Want: 2, Max: 4}
		}
		if i > 0 && r.IntN(10) == 0 {
			spec.After = []sched.JobID{sched.JobID(r.IntN(i))}
		}
		w.Trace.Jobs = append(w.Trace.Jobs,
			trace.Job{Spec: spec, Duration: 1 + time.Duration(r.ExpFloat64()*float64(90*time.Second))})
	}
	pick := func(d time.Duration) time.Duration { return time.Duration(r.IntN(3)) * d }
	w.Runtime = sim.Runtime{Restart: pick(3*time.Second + 7), StartDelay: pick(time.Second + 11),
		StopDelay:  pick(2*time.Second + 13),
		Checkpoint: pick(10 * time.Second), RestartAtFirst: r.IntN(2) == 0,
		EpochEnd: func(j *trace.Job, n int) time.Duration { return time.Duration(n) * (j.Duration/10 + 1) }}
	if r.IntN(2) == 0 {
		w.Runtime.Penalty = func(width int) time.Duration { return time.Duration(width) * 300 * time.Millisecond }
	}
	if r.IntN(2) == 0 {
		w.Runtime.Slowdown = func(_ *sched.View, _ *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
			return 1 + 0.37*float64(nodes-need)
		}
	}
	if r.IntN(2) == 0 {
		w.Runtime.Interference = func(_ *trace.Job, others []*trace.Job) float64 {
			return 1 + 0.21*float64(len(others))
		}
	}
	if r.IntN(3) == 0 {
		w.Runtime.Changes = []sim.Change{{At: at / 3, GPUs: []sched.GPUID{0}, Factor: 1.7},
			{At: at / 2, GPUs: []sched.GPUID{0}, Factor: 1}}
	}
	if r.IntN(3) == 0 {
		w.Cluster.Failures = cluster.Failures{MTBF: 10 * time.Minute, Repair: 20 * time.Second, Seed: seed}
	}
	if r.IntN(3) == 0 { // what boots starts again after a cut, so nothing takes time to
		w.Cluster.Pools = []cluster.Pool{{PoolSpec: sched.PoolSpec{Name: "spot", GPUs: 2, Max: 4, Price: 1}}}
	}
	if r.IntN(2) == 0 {
		w.Sleep = "25"
	}
	w.Scores = ScoresOf(w.Cluster.MostGPUs(), r)
	w.Header = eventlog.Header{Types: w.Cluster.Types, Pools: w.Cluster.PoolSpecs()}
	return w
}

// stated is what jobs say of their work.
type stated struct{}

// Remaining is the wall time less the work done, >= 0.
func (stated) Remaining(v *sched.View, j sched.JobID) time.Duration {
	return max(v.Job(j).Spec.WallTime-v.Job(j).WorkNow(v.Now), 0)
}

// knows is the truth about the jobs of a trace. Of one that is submitted again on a copy it knows nothing: an hour.
type knows struct {
	trace.Oracle
	jobs int
}

// Remaining is the truth, or an hour.
func (k knows) Remaining(v *sched.View, j sched.JobID) time.Duration {
	if int(j) < k.jobs {
		return k.Oracle.Remaining(v, j)
	}
	return time.Hour
}

// ScoresOf draws how much slower than the best each of the GPUs is, in one class.
func ScoresOf(gpus int, r *rand.Rand) *variability.Scores {
	s := &variability.Scores{Name: "test", Classes: []string{"A"}, PM: [][]float64{make([]float64, gpus)}}
	for g := range gpus {
		s.PM[0][g] = 1 + float64(r.IntN(4))/10
		s.GPUs = append(s.GPUs, variability.GPU{Name: fmt.Sprint(g)})
	}
	return s
}

// System makes Deciders of the named system that know what an oracle says; ok is false if it needs more.
func (w *World) System(name string) (fresh whatif.System, shareLimit int, ok bool) {
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
	if w.Sleep != "" {
		set["sleep"] = w.Sleep
	}
	if w.Budget > 0 {
		set["max_gpus"] = fmt.Sprint(int(w.Budget))
	}
	build := func() (system.System, error) {
		most := w.Cluster.MostGPUs()
		k := system.Knowledge{Work: knows{w.Trace.Oracle(), len(w.Trace.Jobs)}, Types: w.Cluster.Types, PerNode: 4,
			MostGPUs: most, Scores: w.Scores,
			Pools: w.Cluster.PoolSpecs(), Budget: float64(most) / 2}
		if w.stated {
			k.Work = stated{}
		}
		return info.Build(k, key.NewSettings(set), nil)
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

// Driver simulates the world from its start.
func (w *World) Driver(t testing.TB) *sim.Driver {
	t.Helper()
	d, err := sim.New(w.Trace, w.Cluster, sim.Options{Runtime: w.Runtime})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
