package eaco_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
)

// explained returns the figures of job id, one on a line.
func explained(d sched.Decider, v *sched.View, id sched.JobID) string {
	var list []string
	d.(sched.Explainer).Explain(v, id, func(f sched.Fact) {
		if f.Text != "" {
			list = append(list, fmt.Sprintf("%s=%s", f.Name, f.Text))
			return
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s=%.4g %s", f.Name, f.Value, f.Unit)))
	})
	return strings.Join(list, "\n")
}

// Ensure that a job that waits hears the sets that were looked at, and what speaks against each: the limit, a deadline,
// a threshold or its own request.
func TestExplainWaiting(t *testing.T) {
	rows := tables(t)
	for _, c := range []struct {
		name   string
		p      func(*eaco.Params)
		change func(running, waiting *sched.JobSpec)
		want   string
	}{
		{"limit", nil, nil, "slow-down-limit=1.01\ngpus-it-may-have=8 GPUs\nset-1=8 GPUs of 0: VGG-16 would be "},
		{"deadline of the other", func(p *eaco.Params) { p.Slow = 2 },
			func(running, _ *sched.JobSpec) { running.Deadline = sched.Time(hours(rows["AlexNet"].JCTHours)) },
			"slow-down-limit=2\ngpus-it-may-have=8 GPUs\nset-1=8 GPUs of 0: AlexNet would be "},
		{"too used", nil, func(running, _ *sched.JobSpec) { running.Util = .9 },
			"slow-down-limit=1.01\ngpus-it-may-have=0 GPUs\ngpus-too-used=8 GPUs\nsets-looked-at=0"},
		{"memory", nil, func(running, _ *sched.JobSpec) { running.GPUMemGB = 99 },
			"slow-down-limit=1.01\ngpus-it-may-have=0 GPUs\ngpus-short-of-memory=8 GPUs\nsets-looked-at=0"},
		{"full", func(p *eaco.Params) { p.Most = 1 }, nil,
			"slow-down-limit=1.01\nshares-with-nobody=no one does here\ngpus-it-may-have=0 GPUs\ngpus-not-shared=8 " +
				"GPUs\nsets-looked-at=0"},
		{"its request", nil, func(_, waiting *sched.JobSpec) { waiting.Share = sched.ShareNever },
			"slow-down-limit=1.01\nshares-with-nobody=it does not want to\ngpus-it-may-have=0 " +
				"GPUs\ngpus-not-shared=8 GPUs\nsets-looked-at=0"},
		{"its user", func(p *eaco.Params) { p.UserGPUs = 12 }, nil, "slow-down-limit=1.01\nheld-by-its-user=8 GPUs\n"},
		{"late", nil, func(_, waiting *sched.JobSpec) { waiting.Deadline = 1 }, "slack=-"},
	} {
		p := eaco.Params{Known: eaco.Known{Learner: seeded(t, rows)}, Slow: 1.01, LateWait: true}
		if c.p != nil {
			c.p(&p)
		}
		s := newStill(1)
		s.add(job(rows, "AlexNet", 0), 0)
		id := s.add(job(rows, "VGG-16", 0), -1)
		if c.change != nil {
			c.change(s.view.Jobs[0].Spec, s.view.Jobs[1].Spec)
		}
		p.Work = s
		d, err := eaco.New(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := explained(d, &s.view, id); got != "" {
			t.Errorf("%s: of a job it has not met: %s", c.name, got)
		}
		d.Resume(&s.view)
		if got := explained(d, &s.view, id); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// Ensure that a job that runs hears how it gets on, that the pairs say with whom one could be, and that what fits is
// said.
func TestExplainRunning(t *testing.T) {
	rows := tables(t)
	s := newStill(1)
	running := s.add(job(rows, "AlexNet", 0), 0)
	id := s.add(job(rows, "VGG-16", 0), -1)
	d, err := eaco.New(eaco.Params{Known: eaco.Known{Work: s, Learner: seeded(t, rows)}, Slow: 2})
	if err != nil {
		t.Fatal(err)
	}
	d.Resume(&s.view)
	if got, want := explained(d, &s.view, running),
		"jobs-on-its-gpus=1\nslow-down-predicted=1\nslow-down-limit=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := explained(d, &s.view, id), "slow-down-limit=2\ngpus-it-may-have=8 GPUs\nset-1=8 GPUs of 0: it "+
		"may have them\nsets-looked-at=1\nfits=8 GPUs of 0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var out sched.Desired
	d.Decide(&s.view, &out)
	for job, name := range []string{"AlexNet", "VGG-16"} {
		got := explained(d, &s.view, sched.JobID(job))
		if !strings.HasPrefix(got, "jobs-on-its-gpus=2\nslow-down-predicted=1.") ||
			!strings.Contains(got, "on-trial=VGG-16") {
			t.Errorf("%s on trial: %s", name, got)
		}
	}
	for rule, least := range map[eaco.PairRule]string{eaco.FIFOPacked: "1.5", eaco.Gandiva: "1"} {
		p, err := eaco.NewPairs(eaco.Known{Work: s, Learner: seeded(t, rows)}, rule, 0, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Resume(&s.view)
		if got := explained(p, &s.view, id); !strings.HasPrefix(got,
			"could-join=1 jobs\nbest-beside=AlexNet\ndone-together=1.") ||
			!strings.HasSuffix(got, "done-together-least="+least) {
			t.Errorf("%s", got)
		}
		if got, want := explained(p, &s.view, running), "jobs-on-its-gpus=1\nslow-down-predicted=1"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// nosy is a Decider that is asked about every job after every event, and notes who is on trial.
type nosy struct {
	sched.Decider
	trials *int
}

func (n nosy) Observe(v *sched.View, e *sched.Event) {
	n.Decider.Observe(v, e)
	for id := range v.Jobs {
		if strings.Contains(explained(n.Decider, v, sched.JobID(id)), "on-trial=") {
			*n.trials++
		}
	}
}

// Ensure that in random worlds asking about every job, whenever anything happens, changes no decision.
func TestExplainChangesNothing(t *testing.T) {
	trials := 0
	for seed := range uint64(100) {
		for _, build := range []func(k eaco.Known) (sched.Decider, error){
			func(k eaco.Known) (sched.Decider, error) { return eaco.New(eaco.Params{Known: k, Slow: 1.2}) },
			func(k eaco.Known) (sched.Decider, error) { return eaco.NewPairs(k, eaco.FIFOPacked, 1, 0, nil) },
			func(k eaco.Known) (sched.Decider, error) { return eaco.NewPairs(k, eaco.Gandiva, 1, 0, nil) },
		} {
			m := drawn(seed, 0.1)
			fresh := func() *interference.Learner { return interference.NewLearner(&interference.History{}) }
			want := m.run(t, build, fresh())
			got := m.run(t, func(k eaco.Known) (sched.Decider, error) {
				d, err := build(k)
				return nosy{d, &trials}, err
			}, fresh())
			if !reflect.DeepEqual(got.lines, want.lines) || !reflect.DeepEqual(got.jobs, want.jobs) {
				t.Fatalf("seed %d: asked, it decided\n%s\nelse\n%s", seed, strings.Join(got.lines, "\n"),
					strings.Join(want.lines, "\n"))
			}
		}
	}
	if trials == 0 {
		t.Error("no trial was ever reported")
	}
}
