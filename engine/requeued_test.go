package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that what a time limit counts starts from zero after a requeue by the user, and goes on after other stops; it
// is kept with the state.
func TestTimeStartsAgainAfterRequeue(t *testing.T) {
	tr := &trace.Trace{Jobs: []trace.Job{{Spec: sched.JobSpec{Name: "a", GPUs: sched.Rigid(1)}, Duration: time.Minute}}}
	c, err := cluster.Load("1x1")
	if err != nil {
		t.Fatal(err)
	}
	do := func(at sched.Time, c sched.Command) sched.Event {
		return sched.Event{Time: at * second, Kind: sched.JobCommanded, Job: 0, Code: int32(c)}
	}
	d, err := sim.New(tr, c, sim.Options{Inject: []sched.Event{do(5, sched.PauseJob), do(9, sched.ResumeJob),
		do(20, sched.RequeueJob), do(30, sched.PauseJob), do(31, sched.ResumeJob)}})
	if err != nil {
		t.Fatal(err)
	}
	var counted []time.Duration // as each attempt starts
	note := sinkFunc(func(v *sched.View, e *sched.Event) {
		if e.Kind != sched.AttemptStarted {
			return
		}
		text, bad := json.Marshal(v.Jobs[0])
		var again sched.Job
		if bad == nil {
			bad = json.Unmarshal(text, &again)
		}
		if now := v.Jobs[0].RunSince(v.Now); bad != nil || again.RunSince(v.Now) != now {
			t.Errorf("%v counted after a copy, want %v (%v)", again.RunSince(v.Now), now, bad)
		}
		counted = append(counted, v.Jobs[0].RunSince(v.Now))
	})
	dec := pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}})
	if err = engine.Run(t.Context(), engine.NewState(eventlog.Header{}), d, dec,
		engine.Options{Sinks: []eventlog.Sink{note}}); err != nil {
		t.Fatal(err)
	}
	if len(counted) != 4 || counted[0] != 0 || counted[1] != 5*time.Second || counted[2] != 0 ||
		counted[3] != 10*time.Second {
		t.Errorf("counted %v, want 0s, 5s, 0s, 10s", counted)
	}
}
