package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// boaRows are the systems compared. The first are learned, as a user would have them; oracle runs come after the baselines.
var boaRows = []struct {
	label, system, information string // information "" = it takes none
	oracle                     bool
}{
	{"boa-exact, price", boaExact, "price", false},
	{boaExact, boaExact, "estimated", false},
	{boaGlue, boaGlue, "estimated", false},
	{"equal-width", "equal-width", "estimated", false},
	{"fifo-skip, reserved", "fifo-skip", "", false},
	{"tiresias-las, reserved", "tiresias-las", "", false},
	{"elastic-fifo, reserved", "elastic-fifo", "", false},
	{"pollux, reserved", pollux, "", false},
	{"boa-exact, perfect", boaExact, "perfect", true},
	{"boa, perfect", boaGlue, "perfect", true},
	{"equal-width, perfect", "equal-width", "perfect", true},
}

// boaBoot is how long a rented node boots. Ours, in the range of a cloud's virtual machines.
const boaBoot = 120. // seconds

// polluxRound is how often pollux and pollux-autoscale decide, in seconds: it is to be longer than any restart. Published: 60 s,
// with restarts of 30. On a reservation both mixes took longer at 600 s.
const polluxRound = 300

// Systems that others are named by: autoscale rents by a target of utility instead of a budget.
const (
	boaExact  = "boa-exact"
	boaGlue   = "boa"
	pollux    = "pollux"
	autoscale = "pollux-autoscale"
)

// boaMix is a workload that goes on for long: a published one, drawn from with repeats at its rate, or one of our own.
type boaMix struct {
	Name    string    `json:"name"`
	Nodes   string    `json:"nodes"`
	Boot    float64   `json:"boot_s"`
	Hours   float64   `json:"hours"`   // of arrivals
	WarmUp  float64   `json:"warm_up"` // of them, cut off
	Seeds   int       `json:"seeds"`
	Budgets []float64 `json:"budgets_gpus"`
	Targets []float64 `json:"utilities"`      // of pollux-autoscale
	Rows    []boaRow  `json:"rows"`           // one for each system and budget
	Pairs   []boaPair `json:"at_equal_spend"` // one for each of Targets, then one for each of Budgets

	perNode int
	asIs    bool   // plans are followed whatever they turn out to cost
	restart string // key restart_overhead
	apps    map[string]speedup.App
	rate    float64 // jobs per hour
	draw    []sched.JobSpec
	shares  []float64       // of them among the jobs, in all 1; nil = each as likely
	mix     []speedup.Class // rates and curves as an oracle knows them; nil = those of the jobs drawn
}

// boaRow is what came of a system at a budget, over seeds.
type boaRow struct {
	System string   `json:"system"`
	Oracle bool     `json:"oracle"`
	Budget float64  `json:"budget_gpus"`
	Spend  estimate `json:"gpus"`      // paid for on average after the warm-up, until the last arrival
	JCT    estimate `json:"avg_jct_s"` // of jobs submitted after it
	Left   int      `json:"unfinished"`

	seeds []boaSeed
}

// boaSeed is what came of one simulation.
type boaSeed struct {
	paid, jct float64
	left      int
}

// boaPair is Pollux, on a reservation or with as many nodes as the utility it aims at is worth, and BOA, learned as well, on a budget
// of what that paid: each seed's own.
type boaPair struct {
	Utility float64    `json:"utility,omitempty"` // 0 = on a reservation
	Pollux  boaRow     `json:"pollux"`
	BOA     []boaRow   `json:"boa"`        // boa-exact, and boa
	Ratios  []estimate `json:"jct_ratios"` // of Pollux over each of BOA, over seeds
}

// boaExperiment compares BOA with baselines at equal budgets, as curves of what was really spent and how long jobs took: in the
// long run, with nodes that take time to boot and are paid for until they are empty, and restarts that cost.
func boaExperiment(ctx context.Context, w io.Writer, o Options) error {
	mixes, err := boaMixes(o)
	if err != nil {
		return fmt.Errorf("experiment: boa: %w", err)
	}
	var tasks []task
	for _, m := range mixes {
		if o.Seeds > 0 {
			m.Seeds = o.Seeds
		}
		tasks = append(tasks, m.tasks()...)
	}
	if err := inParallel(ctx, tasks, o.Progress); err != nil {
		return fmt.Errorf("experiment: boa: %w", err)
	}
	for _, m := range mixes {
		m.sum()
	}
	if !o.JSON {
		return printBOA(w, mixes)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Schema     string    `json:"schema"`
		Experiment string    `json:"experiment"`
		Mixes      []*boaMix `json:"mixes"`
	}{"trainyard.experiment/v1", "boa", mixes})
}

// boaMixes returns the published mixes; one of our own where there is no data.
func boaMixes(o Options) ([]*boaMix, error) {
	if o.Data == "" {
		return []*boaMix{ownMix()}, nil
	}
	apps, err := speedup.ReadProfiles(os.DirFS(filepath.Join(o.Data, "pollux/osdi21/traces")), "")
	if err != nil {
		return nil, err
	}
	cluster := &boaMix{Name: "BOA's cluster mix: cifar10, deepspeech2, bert", Nodes: "nodes of 4 GPUs", perNode: 4, Boot: boaBoot, Hours: 90, WarmUp: 30, Seeds: 2,
		Budgets: []float64{24, 32, 48}, Targets: []float64{0.35, 0.5, 0.65}, restart: "cifar10=50,deepspeech2=25,bert=120"}
	six := &boaMix{Name: "Pollux workload 6", Nodes: "nodes of 4 GPUs", perNode: 4, Boot: boaBoot, Hours: 72, WarmUp: 32, Seeds: 2,
		Budgets: []float64{112, 160}, Targets: []float64{0.5}, restart: "cifar10=50,deepspeech2=25,bert=120,yolov3=80,imagenet=250,ncf=15"}
	for _, m := range []struct {
		*boaMix
		file   string
		window float64 // hours
	}{{cluster, "pollux/boa/workload-1-cbd.csv", 26752. / 3600}, {six, "pollux/osdi21/workloads/workload-6.csv", 8}} {
		t, err := trace.Read(filepath.Join(o.Data, m.file), trace.Options{})
		if err != nil {
			return nil, err
		}
		m.rate, m.apps = float64(len(t.Jobs))/m.window, map[string]speedup.App{}
		for _, a := range apps {
			m.apps[a.Name] = a
		}
		for i := range t.Jobs {
			m.draw = append(m.draw, t.Jobs[i].Spec)
		}
	}
	return []*boaMix{cluster, six}, nil
}

// ownMix needs no data: two applications that scale as Amdahl's law says, one well.
func ownMix() *boaMix {
	m := &boaMix{Name: "two generated applications", Nodes: "nodes of 4 GPUs", perNode: 4, Boot: boaBoot, Hours: 60, WarmUp: 20, Seeds: 3, Budgets: []float64{24, 40}, Targets: []float64{0.5},
		restart: "60", rate: 6, apps: map[string]speedup.App{"wide": amdahlApp(.95, 2), "narrow": amdahlApp(.7, 1)}}
	for _, model := range []string{"wide", "narrow"} {
		m.draw = append(m.draw, sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: 4, Max: 64}})
	}
	return m
}

// amdahlApp is a phase of so many hours on one GPU, of which a share runs in parallel.
func amdahlApp(parallel, hours float64) speedup.App {
	t := &speedup.Throughputs{Batches: []int{1}, Worth: speedup.Samples{3600 * hours}}
	rates := []float64{}
	for k := 1; k <= 64; k++ {
		t.GPUs = append(t.GPUs, k)
		rates = append(rates, 1/(1-parallel+parallel/float64(k)))
	}
	t.Rates = [][]float64{rates}
	return t
}

// pool is what may be rented: far more than the budget.
func (m *boaMix) pool(budget float64) *cluster.Cluster {
	spec := sched.PoolSpec{Name: "rented", GPUs: m.perNode, Boot: sched.Seconds(m.Boot), Max: int32(4*budget)/int32(m.perNode) + 64}
	return &cluster.Cluster{Name: "rented", Types: []string{"gpu"}, Racks: []string{""},
		Pools: []cluster.Pool{{PoolSpec: spec, Node: sched.NodeSpec{GPUs: m.perNode}}}}
}

// trace draws jobs, which arrive at random.
func (m *boaMix) trace(seed uint64) *trace.Trace {
	t := &trace.Trace{Format: "generated", Profiled: true}
	r := rand.New(rand.NewPCG(seed, 6))
	for at := 0.; ; {
		if at += r.ExpFloat64() * 3600 / m.rate; at >= m.Hours*3600 {
			return t
		}
		j := trace.Job{Spec: m.draw[m.pick(r)]}
		j.Spec.Name, j.Spec.Submit = fmt.Sprint(len(t.Jobs)), sched.Time(at*1e9)
		t.Jobs = append(t.Jobs, j)
	}
}

// pick draws one of m.draw.
func (m *boaMix) pick(r *rand.Rand) int {
	if m.shares == nil {
		return r.IntN(len(m.draw))
	}
	x, i := r.Float64(), 0
	for ; i < len(m.shares)-1 && x >= m.shares[i]; i++ {
		x -= m.shares[i]
	}
	return i
}

// settledJCT is the mean of the jobs submitted after the warm-up.
func (m *boaMix) settledJCT(out *Outcome) float64 {
	sum, n := 0.0, 0.0
	for i := range out.PerJob {
		if j := &out.PerJob[i]; j.Submit.Seconds() >= m.WarmUp*3600 && j.Outcome == sched.Finished {
			sum, n = sum+j.JCT().Seconds(), n+1
		}
	}
	return sum / max(n, 1)
}
