package eaco_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/eaco"
)

// Ensure that slow-downs are learned from no guess of how long an epoch takes alone: a job of which nothing is known is
// taken for an hour, next to which an epoch of seconds is a speed-up by a hundred.
func TestNothingIsLearnedFromGuesses(t *testing.T) {
	work, l := remaining.New(), interference.NewLearner(&interference.History{})
	if _, err := eaco.New(eaco.Params{Known: eaco.Known{Work: work, Learner: l}}); err != nil {
		t.Fatal(err)
	}
	spec := &sched.JobSpec{Model: "m", GPUs: sched.Rigid(1), Epochs: 10}
	v := &sched.View{Jobs: []sched.Job{{Spec: spec}}}
	if d := l.Epoch(v, 0); d != 0 {
		t.Errorf("an epoch of a job of which nothing is known takes %v, want none to be known", d)
	}
	v.Jobs[0].Work = 10 * time.Second
	work.Observe(v, &sched.Event{Kind: sched.Progressed, Job: 0, Work: 10 * time.Second, Value: 10, Code: 100})
	if d := l.Epoch(v, 0); d != 10*time.Second {
		t.Errorf("an epoch of a job that says its steps takes %v, want 10s", d)
	}
}
