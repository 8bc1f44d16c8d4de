package experiment

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/trainyard/trainyard/internal/parallel"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// boaRows are the systems compared. The first are learned, as a user would have them; oracle runs come after the
// baselines.
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

// polluxRound is how often pollux and pollux-autoscale decide, in seconds: it is to be longer than any restart.
// Published: 60 s,
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
	Name  string `json:"name"`
	Nodes string `json:"nodes"`
	simulate.LongRun
	Seeds   int       `json:"seeds"`
	Budgets []float64 `json:"budgets_gpus"`
	Targets []float64 `json:"utilities"`      // of pollux-autoscale
	Rows    []boaRow  `json:"rows"`           // one for each system and budget
	Pairs   []boaPair `json:"at_equal_spend"` // one for each of Targets, then one for each of Budgets
}

// boaRow is what came of a system at a budget, over seeds.
type boaRow struct {
	System string            `json:"system"`
	Oracle bool              `json:"oracle"`
	Budget float64           `json:"budget_gpus"`
	Spend  simulate.Interval `json:"gpus"`      // paid for on average after the warm-up, until the last arrival
	JCT    simulate.Interval `json:"avg_jct_s"` // of jobs submitted after it
	Left   int               `json:"unfinished"`

	seeds []boaSeed
}

// boaSeed is what came of one simulation.
type boaSeed struct {
	paid, jct float64
	left      int
}

// boaPair is Pollux, on a reservation or with as many nodes as the utility it aims at is worth, and BOA, learned as
// well, on a budget of what that paid: each seed's own.
type boaPair struct {
	Utility float64             `json:"utility,omitempty"` // 0 = on a reservation
	Pollux  boaRow              `json:"pollux"`
	BOA     []boaRow            `json:"boa"`        // boa-exact, and boa
	Ratios  []simulate.Interval `json:"jct_ratios"` // of Pollux over each of BOA, over seeds
}

// boaExperiment compares BOA with baselines at equal budgets, as curves of what was really spent and how long jobs
// took: in the long run, with nodes that take time to boot and are paid for until they are empty, and restarts that
// cost.
func boaExperiment(ctx context.Context, w io.Writer, o Options) error {
	mixes, err := boaMixes(o)
	if err != nil {
		return fmt.Errorf("experiment: boa: %w", err)
	}
	var tasks []parallel.Task
	for _, m := range mixes {
		if o.Seeds > 0 {
			m.Seeds = o.Seeds
		}
		tasks = append(tasks, m.tasks()...)
	}
	if err := parallel.Do(ctx, runtime.GOMAXPROCS(0), tasks, o.Progress); err != nil {
		return fmt.Errorf("experiment: boa: %w", err)
	}
	for _, m := range mixes {
		m.sum()
	}
	return o.show(w, struct {
		Schema     string    `json:"schema"`
		Experiment string    `json:"experiment"`
		Mixes      []*boaMix `json:"mixes"`
	}{"trainyard.experiment/v1", "boa", mixes}, func(w io.Writer) error { return printBOA(w, mixes) })
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
	cluster := &boaMix{Name: "BOA's cluster mix: cifar10, deepspeech2, bert", Nodes: "nodes of 4 GPUs", Seeds: 2,
		LongRun: simulate.LongRun{PerNode: 4, Boot: boaBoot, Hours: 90, WarmUp: 30,
			Restart: "cifar10=50,deepspeech2=25,bert=120"},
		Budgets: []float64{24, 32, 48}, Targets: []float64{0.35, 0.5, 0.65}}
	six := &boaMix{Name: "Pollux workload 6", Nodes: "nodes of 4 GPUs", Seeds: 2,
		LongRun: simulate.LongRun{PerNode: 4, Boot: boaBoot, Hours: 72, WarmUp: 32,
			Restart: "cifar10=50,deepspeech2=25,bert=120,yolov3=80,imagenet=250,ncf=15"},
		Budgets: []float64{112, 160}, Targets: []float64{0.5}}
	for _, m := range []struct {
		*boaMix
		file   string
		window float64 // hours
	}{{cluster, "pollux/boa/workload-1-cbd.csv", 26752. / 3600}, {six, "pollux/osdi21/workloads/workload-6.csv", 8}} {
		t, err := trace.Read(filepath.Join(o.Data, m.file), trace.Options{})
		if err != nil {
			return nil, err
		}
		m.Rate, m.Apps = float64(len(t.Jobs))/m.window, map[string]speedup.App{}
		for _, a := range apps {
			m.Apps[a.Name] = a
		}
		for i := range t.Jobs {
			m.Draw = append(m.Draw, t.Jobs[i].Spec)
		}
	}
	return []*boaMix{cluster, six}, nil
}

// ownMix needs no data: two applications that scale as Amdahl's law says, one well.
func ownMix() *boaMix {
	m := &boaMix{Name: "two generated applications", Nodes: "nodes of 4 GPUs", Seeds: 3,
		LongRun: simulate.LongRun{PerNode: 4, Boot: boaBoot, Hours: 60, WarmUp: 20, Restart: "60", Rate: 6,
			Apps: map[string]speedup.App{"wide": simulate.AmdahlApp(.95, 2), "narrow": simulate.AmdahlApp(.7, 1)}},
		Budgets: []float64{24, 40}, Targets: []float64{0.5}}
	for _, model := range []string{"wide", "narrow"} {
		m.Draw = append(m.Draw, sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: 4, Max: 64}})
	}
	return m
}
