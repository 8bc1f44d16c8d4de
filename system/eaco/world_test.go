package eaco_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/trace"
)

// nodeGB is the memory of a GPU in tests: only shares of it matter.
const nodeGB = 100

// hour is the unit of the paper's tables.
const hour = sched.Time(time.Hour)

func hours(h float64) time.Duration { return sched.Seconds(h * 3600) }

// tables returns the rows of the paper's tables, by the models of their sets.
func tables(t testing.TB) map[string]interference.EaCORow {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "colocation/eaco/eaco_tables.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := interference.ReadEaCO(f, "tables")
	if err != nil {
		t.Fatal(err)
	}
	sets := make(map[string]interference.EaCORow)
	for _, r := range rows {
		sets[strings.Join(r.Jobs, "+")] = r
	}
	return sets
}

// seeded returns a learner that knows the paper's tables.
func seeded(t testing.TB, rows map[string]interference.EaCORow) *interference.Learner {
	t.Helper()
	var list []interference.EaCORow
	for _, k := range []string{"AlexNet", "ResNet-18", "ResNet-50", "VGG-16", "AlexNet+ResNet-50", "AlexNet+VGG-16",
		"ResNet-18+VGG-16",
		"AlexNet+ResNet-18+ResNet-50", "AlexNet+ResNet-18+VGG-16", "AlexNet+ResNet-18+ResNet-50+VGG-16"} {
		list = append(list, rows[k])
	}
	sets, err := interference.EaCOSets(list)
	if err != nil {
		t.Fatal(err)
	}
	h := &interference.History{}
	if err := h.Seed(sets); err != nil {
		t.Fatal(err)
	}
	return interference.NewLearner(h)
}

// job returns a job of one of the paper's models: 8 GPUs, 90 epochs.
func job(rows map[string]interference.EaCORow, model string, deadline float64) trace.Job {
	r := rows[model]
	j := trace.Job{Duration: hours(r.JCTHours), Spec: sched.JobSpec{Name: model, Model: model, GPUs: sched.Rigid(8),
		Epochs: 90, Share: sched.ShareAllow,
		Util: float32(r.Use), GPUMemGB: float32(r.MaxMemory * nodeGB)}}
	if deadline > 0 {
		j.Spec.Deadline = sched.Time(hours(deadline))
	}
	return j
}

// still is a cluster in which jobs run and nothing moves: what a Decider is shown.
type still struct {
	view sched.View
	jobs []trace.Job
}

// newStill returns nodes of 8 GPUs.
func newStill(nodes int) *still {
	s := &still{view: sched.View{ShareLimit: 4, Types: []string{"v100"}}}
	for n := range nodes {
		s.view.Nodes = append(s.view.Nodes, sched.Node{Spec: sched.NodeSpec{Name: fmt.Sprint(n), GPUs: 8,
			GPUMemGB: nodeGB, Pool: sched.None}, First: sched.GPUID(8 * n)})
		for range 8 {
			s.view.GPUs = append(s.view.GPUs, sched.GPU{Node: sched.NodeID(n)})
		}
	}
	return s
}

// add adds a job that runs on a node; node < 0: that waits.
func (s *still) add(j trace.Job, node int) sched.JobID {
	id := sched.JobID(len(s.jobs))
	s.jobs = append(s.jobs, j)
	spec := j.Spec
	x := sched.Job{Spec: &spec, State: sched.Waiting}
	if node >= 0 {
		x.State, x.Attempt, x.Attempts, x.Rate, x.Up = sched.Active, sched.Running, 1, 1, true
		x.Share = sched.Shared
		for g := range spec.GPUs.Want {
			x.Target = append(x.Target, sched.GPUID(8*node)+sched.GPUID(g))
		}
		x.GPUs, x.Live = x.Target, x.Config
	}
	s.view.Jobs = append(s.view.Jobs, x)
	return id
}

// Remaining is all of a job.
func (s *still) Remaining(v *sched.View, id sched.JobID) time.Duration {
	return s.jobs[id].Duration - v.Jobs[id].WorkNow(v.Now)
}

// decide returns what EaCO makes of it: "wait", or the node and whether on trial.
func (s *still) decide(t testing.TB, p eaco.Params, more ...sched.Event) string {
	t.Helper()
	p.Work = s
	d, err := eaco.New(p)
	if err != nil {
		t.Fatal(err)
	}
	d.Resume(&s.view)
	for i := range more {
		s.view.Now = more[i].Time
		d.Observe(&s.view, &more[i])
	}
	var out sched.Desired
	d.Decide(&s.view, &out)
	var text []string
	for _, n := range out.Notes {
		text = append(text, n.Why.Code.String())
	}
	for i := range out.Jobs {
		x := &out.Jobs[i]
		set := out.Set(x)
		text = append(text, fmt.Sprintf("%c %s %d", 'A'+rune(set[0]/8), x.Why.Code, len(set)))
	}
	if len(text) == 0 {
		return "wait"
	}
	return strings.Join(text, ", ")
}

// published are the parameters of the paper's examples.
func published(t testing.TB, rows map[string]interference.EaCORow) eaco.Params {
	return eaco.Params{Known: eaco.Known{Learner: seeded(t, rows)}, Slow: math.Inf(1), LateWait: true}
}

// moving is a simulation.
type moving struct {
	jobs    []trace.Job
	nodes   int
	truth   func(j *trace.Job, others []*trace.Job) float64
	inject  []sched.Event
	restart time.Duration
}

// reported is what came of it.
type reported struct {
	metrics.Result
	jobs  []metrics.Job
	lines []string // what was decided about trials: hours, job, word
	kept  map[string]bool
	late  map[string]bool
	peak  int // jobs on a GPU at most
}

// Log notes what is decided.
func (r *reported) Log(v *sched.View, e *sched.Event) {
	switch e.Kind {
	case sched.Decided:
		if e.Why.Code == sched.WhyKept {
			r.kept[v.Jobs[e.Job].Spec.Name] = true
		}
		if e.Target.At == sched.AtOnce {
			node := "-"
			if len(e.GPUs) > 0 {
				node = string('A' + rune(e.GPUs[0]/8))
			}
			r.lines = append(r.lines, fmt.Sprintf("%.4f %s %s %s", float64(e.Time)/float64(hour),
				v.Jobs[e.Job].Spec.Name, e.Why.Code, node))
		}
	case sched.Noted:
		r.late[v.Jobs[e.Job].Spec.Name] = true
	case sched.Ordered:
		for g := range v.GPUs {
			r.peak = max(r.peak, int(v.GPUs[g].Holders))
		}
	}
}

// run simulates until all is done.
func (m *moving) run(t testing.TB, build func(k eaco.Known) (sched.Decider, error), l *interference.Learner) *reported {
	t.Helper()
	c, err := cluster.Load(fmt.Sprintf("%dx8:v100", m.nodes))
	if err != nil {
		t.Fatal(err)
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		c.Nodes[i].GPUMemGB, c.Nodes[i].IdleW, c.Nodes[i].Curve = nodeGB, 650.4,
			sched.PowerCurve{Scale: 1310.9, Exponent: 1.55}
	}
	tr := &trace.Trace{Jobs: m.jobs}
	d, err := sim.New(tr, c, sim.Options{Inject: m.inject,
		Runtime: sim.Runtime{Interference: m.truth, Restart: m.restart,
			EpochEnd: func(j *trace.Job, n int) time.Duration {
				if n > int(j.Spec.Epochs) {
					return math.MaxInt64
				}
				return time.Duration(float64(j.Duration) * float64(n) / float64(j.Spec.Epochs))
			}}})
	if err != nil {
		t.Fatal(err)
	}
	dec, err := build(eaco.Known{Work: tr.Oracle(), Learner: l,
		Restart: func(string) time.Duration { return m.restart }})
	if err != nil {
		t.Fatal(err)
	}
	rec, r := metrics.NewRecorder(len(m.jobs)), &reported{kept: map[string]bool{}, late: map[string]bool{}}
	state := engine.NewState(eventlog.Header{ShareLimit: 4, Types: c.Types})
	if err := engine.Run(context.Background(), state, d, dec,
		engine.Options{Sinks: []eventlog.Sink{rec, r}}); err != nil {
		t.Fatal(err)
	}
	r.Result, r.jobs = rec.Result("eaco"), rec.Jobs
	return r
}
