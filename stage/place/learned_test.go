package place_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/model/skew"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// Every model runs slower spread by its skew: a vgg16 1.74 times as long, a resnet50 1.11 times, a resnet152 1.06
// times.
func spreadPenalty(_ *sched.View, t *trace.Job, _ []sched.GPUID, nodes, need int) float64 {
	if nodes <= need {
		return 1
	}
	f, _ := skew.Of(t.Spec.Model)
	return 1 + float64(skew.Penalty*f)
}

// mixed is a trace of gangs on nodes of four GPUs, so busy that gangs are spread where they may be. No model suffers
// just a little above what counts as slow.
func mixed(seed uint64, jobs int) *trace.Trace {
	r := rand.New(rand.NewPCG(seed, 3))
	t, at := &trace.Trace{}, sched.Time(0)
	for i := range jobs {
		at += sched.Time(r.Int64N(4e9))
		t.Jobs = append(t.Jobs, trace.Job{Duration: time.Second * time.Duration(1+r.IntN(40)),
			Spec: sched.JobSpec{Name: fmt.Sprint(i), Submit: at, GPUs: sched.Rigid(1 + r.IntN(4)),
				Model: []string{"vgg16", "vgg19", "alexnet", "resnet152", "resnet101", "inception4", "googlenet",
					""}[r.IntN(8)]}})
	}
	return t
}

func simulate(t *testing.T, tr *trace.Trace, dec sched.Decider, sinks ...eventlog.Sink) {
	t.Helper()
	c, err := cluster.Load("4x4")
	if err != nil {
		t.Fatal(err)
	}
	d, err := sim.New(tr, c,
		sim.Options{Runtime: sim.Runtime{Slowdown: spreadPenalty, Restart: time.Second,
			StartDelay: 300 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Run(context.Background(), engine.NewState(eventlog.Header{}), d, dec,
		engine.Options{Sinks: sinks}); err != nil {
		t.Fatal(err)
	}
}

// spreads counts the starts of gangs on more than one node of four, by model, before and after learning.
type spreads struct {
	p             *place.LearnedSkew
	before, after map[string]int
}

// Log counts.
func (s *spreads) Log(v *sched.View, e *sched.Event) {
	if e.Kind != sched.Decided || len(e.GPUs) == 0 {
		return
	}
	first, last := v.GPUs[e.GPUs[0]].Node, v.GPUs[e.GPUs[len(e.GPUs)-1]].Node
	switch {
	case first == last:
	case s.p.Limit == 1:
		s.before[v.Jobs[e.Job].Spec.Model]++
	default:
		s.after[v.Jobs[e.Job].Spec.Model]++
	}
}

// Ensure that the limit is learned from how spread gangs run: all are spread at first, later none of the models that
// suffer for it, and the others still.
func TestLearnedSkewLearns(t *testing.T) {
	for seed := range uint64(6) {
		p := place.NewLearnedSkew(skew.Of)
		s := &spreads{p, map[string]int{}, map[string]int{}}
		simulate(t, mixed(seed, 600), pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: p}), s)
		vgg, _ := skew.Of("alexnet")
		resnet, _ := skew.Of("resnet101")
		if p.Limit < resnet || p.Limit >= vgg || p.Revision() == 0 {
			t.Errorf("seed %d: limit %v at revision %d, want it between resnet101's %v and alexnet's %v", seed, p.Limit,
				p.Revision(), resnet, vgg)
		}
		for _, m := range []string{"vgg16", "vgg19", "alexnet"} {
			if s.after[m] > 0 {
				t.Errorf("seed %d: %s is spread %d times after learning", seed, m, s.after[m])
			}
		}
		for _, m := range []string{"resnet152", "resnet101", "inception4", "googlenet", ""} {
			if s.after[m] == 0 {
				t.Errorf("seed %d: %q is never spread after learning", seed, m)
			}
		}
	}
}

// decisions prints every exchange of a target.
type decisions struct{ strings.Builder }

// Log takes what was decided.
func (d *decisions) Log(_ *sched.View, e *sched.Event) {
	if e.Kind == sched.Decided {
		fmt.Fprintln(d, e.Time, e.Job, e.GPUs, e.Why.Code)
	}
}

// Ensure that a new limit, and so other shapes of jobs that wait, reaches the indices: they decide as a walk over all
// jobs does. Skewed gangs wait in line with others of their width when the limit changes.
func TestLearnedSkewTwin(t *testing.T) {
	for seed := range uint64(12) {
		tr := mixed(100+seed, 200)
		run := func(whole bool) string {
			p, d := place.NewLearnedSkew(skew.Of), &decisions{}
			st := pipeline.Stages{Order: order.SRSF{Work: tr.Oracle()}, Place: p, Preempt: true,
				MinRun: 5 * time.Second, WholePass: whole}
			if seed%2 == 0 {
				st = pipeline.Stages{Order: order.FIFO{}, Place: p, WholePass: whole}
			}
			simulate(t, tr, pipeline.New(st), d)
			if p.Revision() == 0 {
				t.Errorf("seed %d: nothing was learned", seed)
			}
			return d.String()
		}
		if indexed, whole := run(false), run(true); indexed != whole {
			t.Errorf("seed %d: decisions with indices\n%s\nwithout\n%s", seed, indexed, whole)
		}
	}
}

// Ensure that a replay that goes on with a saved and loaded memory at every other batch takes the same decisions. The
// order is one whose keys grow: a walk between quanta, which a new revision calls for, would preempt.
func TestLearnedSkewReplay(t *testing.T) {
	learned := place.NewLearnedSkew(skew.Of)
	stages := func(p *place.LearnedSkew) pipeline.Stages {
		return pipeline.Stages{Order: order.LAS{}, Place: p, Preempt: true, Quantum: 7 * time.Second}
	}
	var text bytes.Buffer
	h := eventlog.Header{System: "test"}
	w := eventlog.NewWriter(&text, h)
	tr := mixed(11, 300)
	for i := range tr.Jobs[:200] { // what is learned of it at first does not hold for ever
		if m := &tr.Jobs[i].Spec.Model; strings.HasPrefix(*m, "resnet") {
			*m = "inception4"
		}
	}
	simulate(t, tr, pipeline.New(stages(learned)), w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.NewReader(&text, "log")
	if err != nil {
		t.Fatal(err)
	}
	swaps := 0
	swap := func(batch uint64, v *sched.View, old sched.Decider) (sched.Decider, error) {
		if batch%2 != 0 {
			return old, nil
		}
		swaps++
		dec := pipeline.New(stages(place.NewLearnedSkew(skew.Of)))
		for id := range v.Jobs {
			if err := dec.LoadJob(sched.JobID(id), old.SaveJob(sched.JobID(id), nil)); err != nil {
				return nil, err
			}
		}
		err := dec.LoadRest(old.SaveRest(nil))
		dec.Resume(v)
		return dec, err
	}
	if err := engine.Replay(context.Background(), h, log.Records(), pipeline.New(stages(place.NewLearnedSkew(skew.Of))),
		engine.ReplayOptions{Swap: swap}); err != nil || swaps < 50 || learned.Revision() < 2 {
		t.Errorf("%v after %d swaps and %d revisions", err, swaps, learned.Revision())
	}
}

// learning is a view in which job 0, a gang of two, is spread over two nodes of four, and a placer to watch it.
func learning() (v *sched.View, p *place.LearnedSkew, see func(model string, slowdown float64, times int)) {
	v, p = view(4, 4), place.NewLearnedSkew(skew.Of)
	v.Jobs[0] = sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(2)}, GPUs: []sched.GPUID{0, 4}}
	return v, p, func(model string, slowdown float64, times int) {
		v.Jobs[0].Spec.Model = model
		for range times {
			p.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Rate: 1 / slowdown})
		}
	}
}

// Ensure that nothing is consolidated before enough was seen on both sides, that gangs which need their nodes or are
// wider than asked for, unknown models and unknown rates teach nothing, and that the published limit holds once what
// was slow is forgotten.
func TestLearnedSkewByHand(t *testing.T) {
	v, p, see := learning()
	see("vgg16", 1.7, 500)
	if p.Limit != 1 || p.Revision() != 0 {
		t.Errorf("limit %v at revision %d with one side only, want 1 at 0", p.Limit, p.Revision())
	}
	fresh := func() {
		see("no such model", 1, 50)
		see("resnet50", math.Inf(1), 50)
		v.Jobs[0].GPUs = []sched.GPUID{0, 1}
		see("resnet50", 1, 50)
		v.Jobs[0].GPUs = []sched.GPUID{0, 1, 2, 3, 4}
		see("resnet50", 1, 50)
		v.Jobs[0].GPUs, v.Jobs[0].Asked = []sched.GPUID{0, 4}, 1 // twice as wide as its work is counted in
		see("resnet50", 1, 50)
		v.Jobs[0].Asked = 2
		p.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Rate: 1})
		p.Observe(v, &sched.Event{Kind: sched.Progressed, Rate: 5e-324}) // 1/rate is infinite
	}
	if fresh(); p.Limit != 1 {
		t.Errorf("limit %v after what says nothing of spreading, want 1", p.Limit)
	}
	see("resnet50", 1.05, 16)
	between := p.Limit
	if lo, hi := 0.1, 0.75; !(between > lo && between < hi) || p.Revision() != 1 {
		t.Errorf("limit %v at revision %d, want 1 revision to between %v and %v", between, p.Revision(), lo, hi)
	}
	see("resnet50", 1.05, 2*skew.LimitCount) // what is consolidated is not seen spread any more
	if p.Limit != skew.PackLimit {
		t.Errorf("limit %v with all that was slow forgotten, want the published %v", p.Limit, skew.PackLimit)
	}
}

// Ensure that on nodes of different sizes a gang that one node would hold counts as spread over two narrower ones, and
// that a type without such a node is judged by its own.
func TestLearnedSkewMixedNodes(t *testing.T) {
	for _, c := range []struct {
		wide sched.TypeID
		want bool
	}{{0, true}, {1, false}} {
		v, p := view(2, 2, 4), place.NewLearnedSkew(skew.Of)
		v.Nodes[2].Spec.Type = c.wide
		v.Jobs[0] = sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(4)}, GPUs: []sched.GPUID{0, 1, 2, 3}}
		for i := range 32 {
			v.Jobs[0].Spec.Model = []string{"vgg16", "resnet50"}[i%2]
			p.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Rate: []float64{0.5, 1}[i%2]})
		}
		if learned := p.Limit < 1; learned != c.want {
			t.Errorf("type %d of the wide node: limit %v, want something learned: %v", c.wide, p.Limit, c.want)
		}
	}
}

// Ensure that memory gives the same future at any moment, forgetting included, and that what is malformed is refused
// and changes nothing.
func TestLearnedSkewMemory(t *testing.T) {
	_, p, see := learning()
	r := rand.New(rand.NewPCG(5, 5))
	for step := range 300 {
		b := p.SaveRest(nil)
		q := place.NewLearnedSkew(skew.Of)
		if err := q.LoadRest(b); err != nil {
			t.Fatal(err)
		}
		if q.Limit != p.Limit || q.Revision() != p.Revision() || !bytes.Equal(q.SaveRest(nil), b) {
			t.Fatalf("step %d: limit %v at revision %d after loading, want %v at %d", step, q.Limit, q.Revision(),
				p.Limit, p.Revision())
		}
		if step > 100 {
			see("resnet50", 1.05, 1+r.IntN(20)) // the slow ones are forgotten in time
		} else {
			see([]string{"vgg16", "resnet50", "alexnet"}[r.IntN(3)], []float64{1.05, 1.3}[r.IntN(2)], 1+r.IntN(5))
		}
	}
	b := p.SaveRest(nil)
	for n := range b {
		if n%97 != 0 && n > 40 {
			continue
		}
		if err := p.LoadRest(b[:n]); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(b))
		}
	}
	bad := bytes.Clone(b)
	copy(bad, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}) // NaN
	if p.LoadRest(append(b, 0)) == nil || p.LoadRest(bad) == nil {
		t.Error("a limit that is no number, or a byte too many, is accepted")
	}
	if !bytes.Equal(p.SaveRest(nil), b) {
		t.Error("a load that was refused changed something")
	}
	if p.LoadJob(0, p.SaveJob(0, nil)) != nil {
		t.Error("no memory by job is refused")
	}
}
