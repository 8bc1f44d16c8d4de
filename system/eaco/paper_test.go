package eaco_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
	"github.com/trainyard/trainyard/trace"
)

// Reference: arXiv 2412.08294, table 1 and algorithms 1 and 2; a node of 8 GPUs is the unit, thresholds are 60 %.
// VGG-16 runs on A, ResNet-50 on B, C is idle. Ensure that AlexNet is put on the most used node on which all keep their
// deadlines, an idle one last, or waits.
func TestPackFirst(t *testing.T) {
	rows := tables(t)
	for _, c := range []struct {
		about               string
		newcomer, residents float64 // deadlines in hours; 0 = none
		want                string
	}{
		{"35.804 h on A", 40, 0, "A trial 8"},
		{"the deadline is met by a hair", 35.805, 0, "A trial 8"},
		{"35.804 h on A and 35.983 h on B are too late, 34.76 h on C are not", 35.5, 0, "C started 8"},
		{"nowhere", 34, 0, "at-risk"},
		{"VGG-16 would be done after 37.216 h", 40, 37, "B trial 8"},
		{"and after 37.216 h it may be, its epoch on trial spared", 40, 37.7, "A trial 8"},
	} {
		s := newStill(3)
		s.add(job(rows, "VGG-16", c.residents), 0)
		s.add(job(rows, "ResNet-50", 0), 1)
		s.add(job(rows, "AlexNet", c.newcomer), -1)
		if got := s.decide(t, published(t, rows)); got != c.want {
			t.Errorf("%s: %s, want %s", c.about, got, c.want)
		}
	}
}

// Ensure that a job whose epochs are too long for the resident's slack does not keep out another of its model, whose
// are not.
func TestSlackByEpoch(t *testing.T) {
	rows := tables(t)
	s := newStill(1)
	s.add(job(rows, "VGG-16", 37.7), 0)
	long := job(rows, "AlexNet", 0)
	long.Spec.Epochs = 2
	s.add(long, -1)
	if got := s.decide(t, published(t, rows)); got != "wait" {
		t.Errorf("epochs of 17 h: %s, want wait", got)
	}
	s.add(job(rows, "AlexNet", 0), -1)
	if got := s.decide(t, published(t, rows)); got != "A trial 8" {
		t.Errorf("behind it epochs of 0.4 h: %s, want A trial 8", got)
	}
}

// Ensure that predictions are those of the tables, to the digits printed.
func TestPredictions(t *testing.T) {
	rows, l := tables(t), seeded(t, tables(t))
	place := interference.Place{GPU: "v100", Width: 8}
	for _, c := range []struct {
		job, partner, want string
	}{{"AlexNet", "VGG-16", "35.804"}, {"AlexNet", "ResNet-50", "35.983"}, {"VGG-16", "AlexNet", "37.216"}} {
		est, err := l.History.Slowdowns(place, []interference.Member{{Model: c.job}, {Model: c.partner}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.3f", rows[c.job].JCTHours*est[0].Slow); got != c.want {
			t.Errorf("%s next to %s: %s h, want %s", c.job, c.partner, got, c.want)
		}
	}
}

// Ensure that a node whose use is above the threshold is no candidate, and that below it measured memory counts, not
// the sum of peaks.
func TestThreshold(t *testing.T) {
	rows := tables(t)
	set := rows["AlexNet+ResNet-18+VGG-16"]
	seen := sched.Event{Time: 2 * hour, Kind: sched.Measured, Job: sched.None, Rate: set.Use,
		MemGB: float32(set.MaxMemory * nodeGB)}
	for _, c := range []struct {
		threshold float64
		need      float32 // GB
		want      string
	}{{0.6, 4.21, "wait"}, {0.7, 4.21, "A trial 8"}, {0.7, 47, "A trial 8"}, {0.7, 48, "wait"}} {
		s := newStill(1)
		for _, m := range set.Jobs {
			s.add(job(rows, m, 0), 0)
		}
		j := job(rows, "AlexNet", 0)
		j.Spec.GPUMemGB = c.need
		s.add(j, -1)
		p := published(t, rows)
		p.Use = c.threshold
		if got := s.decide(t, p, seen); got != c.want {
			t.Errorf("threshold %v, %v GB: %s, want %s", c.threshold, c.need, got, c.want)
		}
	}
}

// Ensure that a job of high priority gets GPUs that no one has, and that no one joins it.
func TestHighPriority(t *testing.T) {
	rows := tables(t)
	s := newStill(2)
	s.add(job(rows, "AlexNet", 0), 0)
	first := job(rows, "AlexNet", 0)
	first.Spec.Priority = 1
	s.add(first, -1)
	if got := s.decide(t, published(t, rows)); got != "B started 8" {
		t.Errorf("%s, want the idle node B", got)
	}
	s = newStill(2)
	s.add(first, 0)
	s.view.Jobs[0].Share = sched.Exclusive
	s.add(job(rows, "AlexNet", 0), -1)
	s.add(first, -1)
	s.add(job(rows, "ResNet-18", 0), -1)
	if got := s.decide(t, published(t, rows)); got != "B started 8" {
		t.Errorf("%s, want the first by priority on B, and no one else", got)
	}
}

// Ensure that the sum of free memory counts for a job that spreads over its GPUs, the least for one that does not. GPUs
// with 2 and 14 GB free, 4 GB needed on each.
func TestMemoryRule(t *testing.T) {
	rows := tables(t)
	for _, c := range []struct {
		parallel []string
		want     string
	}{{nil, "wait"}, {[]string{"*"}, "A trial 2"}, {[]string{"alexnet"}, "A trial 2"}, {[]string{"VGG-16"}, "wait"}} {
		s := newStill(1)
		s.view.Nodes[0].Spec.GPUs, s.view.GPUs = 2, s.view.GPUs[:2]
		s.view.Nodes[0].Spec.GPUMemGB = 16
		for g, free := range []float32{2, 14} {
			j := job(rows, "AlexNet", 0)
			j.Spec.GPUs, j.Spec.GPUMemGB = sched.Rigid(1), 16-free
			id := s.add(j, 0)
			s.view.Jobs[id].Target = []sched.GPUID{sched.GPUID(g)}
			s.view.Jobs[id].GPUs = s.view.Jobs[id].Target
		}
		j := job(rows, "AlexNet", 0)
		j.Spec.GPUs, j.Spec.GPUMemGB = sched.Rigid(2), 4
		s.add(j, -1)
		p := published(t, rows)
		p.Memory, p.Parallel = 1, c.parallel
		if got := s.decide(t, p); got != c.want {
			t.Errorf("model parallel %v: %s, want %s", c.parallel, got, c.want)
		}
	}
}

// apart returns jobs that EaCO puts on nodes of their own: while a short job is on trial next to the first, no one
// joins it.
func apart(rows map[string]interference.EaCORow, models ...string) []trace.Job {
	short := job(rows, "AlexNet", 0)
	short.Spec.Name, short.Duration, short.Spec.Epochs = "short", hours(0.01), 1
	jobs := []trace.Job{job(rows, models[0], 0), short}
	for _, m := range models[1:] {
		jobs = append(jobs, job(rows, m, 0))
	}
	return jobs
}

// Ensure that AlexNet, whose first epoch next to VGG-16 takes 0.45 h, leaves at its end with that epoch done, joins
// ResNet-50, where epochs take
// 0.40 h, stays there and is done after 0.45 h + 89 x 0.40 h = 36.05 h; and that both are remembered.
func TestUndo(t *testing.T) {
	rows, l := tables(t), seeded(t, tables(t))
	known := l.History.Len()
	m := moving{nodes: 3, jobs: apart(rows, "VGG-16", "ResNet-50")}
	for _, i := range []int{0, 2} { // they outlast it
		m.jobs[i].Duration, m.jobs[i].Spec.Epochs = 2*m.jobs[i].Duration, 180
	}
	newcomer := job(rows, "AlexNet", 40.02)
	newcomer.Spec.Submit = sched.Time(hours(0.02))
	m.jobs = append(m.jobs, newcomer)
	alone := rows["AlexNet"].JCTHours / 90
	m.truth = func(j *trace.Job, others []*trace.Job) float64 {
		switch {
		case j.Spec.Name != "AlexNet":
			return 1
		case others[0].Spec.Model == "VGG-16":
			return 0.45 / alone
		}
		return 0.40 / alone
	}
	p := published(t, rows)
	r := m.run(t, func(k eaco.Known) (sched.Decider, error) { p.Known = k; return eaco.New(p) }, l)
	var got []string
	for _, line := range r.lines {
		if strings.Contains(line, " AlexNet ") {
			got = append(got, line)
		}
	}
	want := []string{"0.0200 AlexNet trial A", "0.4700 AlexNet undone -", "0.4700 AlexNet trial B"}
	if len(got) != 4 || !slices.Equal(got[:3], want) || !strings.Contains(got[3], "AlexNet kept B") {
		t.Errorf("decided %q, want %q and kept on B", got, want)
	}
	if jct := r.jobs[3].JCT().Hours(); fmt.Sprintf("%.3f", jct) != "36.050" || r.Undos != 1 || r.DeadlineMisses != 0 {
		t.Errorf("done after %v h with %d undos and %d misses, want 36.05, 1, 0", jct, r.Undos, r.DeadlineMisses)
	}
	if l.History.Len() < known {
		t.Errorf("%d sets are known, %d were", l.History.Len(), known)
	}
	est, err := l.History.Slowdowns(interference.Place{GPU: "v100", Width: 8},
		[]interference.Member{{Model: "AlexNet"}, {Model: "VGG-16"}}, nil)
	if err != nil || est[0].Weight != 2 ||
		math.Abs(est[0].Slow-(0.45/alone+rows["AlexNet+VGG-16"].JCTHours/35.445)/2) > 1e-6 {
		t.Errorf("next to VGG-16: %+v (%v), want the mean of the table and of what was measured", est[0], err)
	}
}

// Ensure that a trial is over when each job there has gone through a whole epoch: the newcomer's ends after 0.40 h, the
// resident's second after 0.80 h.
func TestWaitForAll(t *testing.T) {
	rows := tables(t)
	resident, newcomer := job(rows, "VGG-16", 0), job(rows, "AlexNet", 0)
	resident.Duration, newcomer.Duration = hours(36), hours(36)
	newcomer.Spec.Submit = sched.Time(hours(1e-6))
	p := published(t, rows)
	m := moving{nodes: 1, jobs: []trace.Job{resident, newcomer},
		truth: func(*trace.Job, []*trace.Job) float64 { return 1 }}
	r := m.run(t, func(k eaco.Known) (sched.Decider, error) { p.Known = k; return eaco.New(p) }, seeded(t, rows))
	want := []string{"0.0000 VGG-16 started A", "0.0000 AlexNet trial A", "0.8000 AlexNet kept A"}
	if !slices.Equal(r.lines[:3], want) {
		t.Errorf("decided %q, want %q", r.lines, want)
	}
}

// Ensure that an epoch that never ends does not keep a trial going: it is undone at once when it has lasted patience
// times two of the longest epochs at the worst slow-down of a pair.
func TestEndlessEpoch(t *testing.T) {
	rows := tables(t)
	resident, newcomer := job(rows, "VGG-16", 0), job(rows, "AlexNet", 0)
	newcomer.Spec.Submit = sched.Time(hours(0.1))
	p := published(t, rows)
	hung := func(j *trace.Job, _ []*trace.Job) float64 {
		if j.Spec.Name == "AlexNet" {
			return 100
		}
		return 1
	}
	r := (&moving{nodes: 1, jobs: []trace.Job{resident, newcomer}, truth: hung}).run(t,
		func(k eaco.Known) (sched.Decider, error) { p.Known = k; return eaco.New(p) }, seeded(t, rows))
	pair := rows["ResNet-18+VGG-16"].JCTHours / ((rows["ResNet-18"].JCTHours + rows["VGG-16"].JCTHours) / 2)
	want := fmt.Sprintf("%.4f AlexNet undone -", 0.1+2*2*rows["VGG-16"].JCTHours/90*pair)
	if len(r.lines) < 3 || r.lines[2] != want {
		t.Errorf("decided %q, want %q", r.lines, want)
	}
	if r.Finished != 2 || r.Undos != 1 {
		t.Errorf("%d jobs finished, %d undos, want 2 and 1", r.Finished, r.Undos)
	}
}

// Ensure that a pair of normalised throughputs 0.80 + 0.70 is not packed by fifo-packed and 0.80 + 0.71 is; that
// gandiva dissolves 0.50 + 0.49 and keeps 0.50 + 0.50.
func TestPairRules(t *testing.T) {
	for _, c := range []struct {
		rule eaco.PairRule
		a, b float64
		want bool
	}{
		{eaco.FIFOPacked, .80, .70, false}, {eaco.FIFOPacked, .80, .71, true},
		{eaco.Gandiva, .50, .49, false}, {eaco.Gandiva, .50, .50, true},
	} {
		h := &interference.History{}
		if err := h.Record(interference.Place{GPU: "v100", Width: 8}, []string{"a", "b"}, []float64{1 / c.a, 1 / c.b},
			0); err != nil {
			t.Fatal(err)
		}
		s := newStill(1)
		for i, m := range []string{"a", "b"} {
			s.add(trace.Job{Duration: hours(1), Spec: sched.JobSpec{Name: m, Model: m, GPUs: sched.Rigid(8),
				Share: sched.ShareAllow}}, -i)
		}
		d, err := eaco.NewPairs(eaco.Known{Work: s, Learner: interference.NewLearner(h)}, c.rule, 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.Resume(&s.view)
		var out sched.Desired
		if d.Decide(&s.view, &out); len(out.Jobs) == 1 != c.want {
			t.Errorf("rule %d, %v + %v: packed %v, want %v", c.rule, c.a, c.b, len(out.Jobs) == 1, c.want)
		}
	}
}
