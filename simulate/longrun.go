package simulate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// LongRun is a workload that goes on for long on rented nodes: jobs drawn with repeats that arrive at random.
type LongRun struct {
	Boot   float64 `json:"boot_s"`
	Hours  float64 `json:"hours"`   // of arrivals
	WarmUp float64 `json:"warm_up"` // of them, cut off

	PerNode int                    `json:"-"` // GPUs
	Restart string                 `json:"-"` // key restart_overhead
	Apps    map[string]speedup.App `json:"-"`
	Rate    float64                `json:"-"` // jobs per hour
	Draw    []sched.JobSpec        `json:"-"`
	Shares  []float64              `json:"-"` // of them among the jobs, in all 1; nil: each as likely
	Adapt   func(*pipeline.Stages) `json:"-"` // changes the stages of the system; nil = nothing
	Mix     []speedup.Class        `json:"-"` // rates and curves as an oracle knows them; nil: those of the jobs drawn
}

// Run runs one system with these settings and returns what it spent after the warm-up, in GPUs.
func (m *LongRun) Run(ctx context.Context, system string, settings map[string]string, budget float64,
	seed uint64) (*Outcome, float64, error) {
	keys := map[string]string{"restart_overhead": m.Restart, "restart_at_first": "yes"}
	maps.Copy(keys, settings)
	paid := &paidFor{from: sched.Time(m.WarmUp * 3600e9), to: sched.Time(m.Hours * 3600e9)}
	s := Request{Trace: m.Trace(seed), Cluster: m.pool(budget), System: system, Settings: keys, Budget: budget,
		Apps: m.Apps, Mix: m.Mix, Adapt: m.Adapt,
		Sinks: []eventlog.Sink{paid}}
	out, err := s.Run(ctx)
	if err != nil {
		return nil, 0, err
	}
	return out, paid.mean(), nil
}

// pool is what may be rented: far more than the budget.
func (m *LongRun) pool(budget float64) *cluster.Cluster {
	spec := sched.PoolSpec{Name: "rented", GPUs: m.PerNode, Boot: sched.Seconds(m.Boot),
		Max: int32(4*budget)/int32(m.PerNode) + 64}
	return &cluster.Cluster{Name: "rented", Types: []string{"gpu"}, Racks: []string{""},
		Pools: []cluster.Pool{{PoolSpec: spec, Node: sched.NodeSpec{GPUs: m.PerNode}}}}
}

// Trace draws jobs, which arrive at random.
func (m *LongRun) Trace(seed uint64) *trace.Trace {
	t := &trace.Trace{Format: "generated", Profiled: true}
	r := rand.New(rand.NewPCG(seed, 6))
	for at := 0.; ; {
		if at += r.ExpFloat64() * 3600 / m.Rate; at >= m.Hours*3600 {
			return t
		}
		j := trace.Job{Spec: m.Draw[m.pick(r)]}
		j.Spec.Name, j.Spec.Submit = fmt.Sprint(len(t.Jobs)), sched.Time(at*1e9)
		t.Jobs = append(t.Jobs, j)
	}
}

// pick draws one of m.Draw.
func (m *LongRun) pick(r *rand.Rand) int {
	if m.Shares == nil {
		return r.IntN(len(m.Draw))
	}
	x, i := r.Float64(), 0
	for ; i < len(m.Shares)-1 && x >= m.Shares[i]; i++ {
		x -= m.Shares[i]
	}
	return i
}

// SettledJCT is the mean of the jobs submitted after the warm-up.
func (m *LongRun) SettledJCT(out *Outcome) float64 {
	sum, n := 0.0, 0.0
	for i := range out.PerJob {
		if j := &out.PerJob[i]; j.Submit.Seconds() >= m.WarmUp*3600 && j.Outcome == sched.Finished {
			sum, n = sum+j.JCT().Seconds(), n+1
		}
	}
	return sum / max(n, 1)
}

// paidFor is a Sink that adds up the GPUs paid for between two times, from the request of a node until it has gone.
type paidFor struct {
	from, to sched.Time
	now      sched.Time
	gpus     float64 // since now
	seconds  float64 // GPU-seconds
}

// Log folds one event.
func (p *paidFor) Log(v *sched.View, e *sched.Event) {
	p.until(e.Time)
	switch e.Kind {
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.Ordered:
		p.gpus = 0
		for i := range v.Pools {
			pool := &v.Pools[i]
			p.gpus += float64(max(pool.Ordered, pool.Nodes)) * float64(pool.Spec.GPUs)
		}
	}
}

func (p *paidFor) until(now sched.Time) {
	p.seconds += p.gpus * max(0, min(now, p.to).Sub(max(p.now, p.from)).Seconds())
	p.now = now
}

// mean returns the GPUs paid for on average.
func (p *paidFor) mean() float64 {
	p.until(max(p.now, p.to))
	return p.seconds / p.to.Sub(p.from).Seconds()
}

// AmdahlApp is a phase of so many hours on one GPU, of which a share runs in parallel.
func AmdahlApp(parallel, hours float64) speedup.App {
	t := &speedup.Throughputs{Batches: []int{1}, Worth: speedup.Samples{3600 * hours}}
	rates := []float64{}
	for k := 1; k <= 64; k++ {
		t.GPUs = append(t.GPUs, k)
		rates = append(rates, 1/(1-parallel+parallel/float64(k)))
	}
	t.Rates = [][]float64{rates}
	return t
}
