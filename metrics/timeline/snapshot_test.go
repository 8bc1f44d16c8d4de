package timeline_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a snapshot goes on to now while jobs are not done, that its classes sum to GPUs x time, and that neither
// it nor what is folded afterwards changes the other.
func TestSnapshot(t *testing.T) {
	v := &sched.View{Types: []string{"A"}}
	v.Nodes = []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 2}, State: sched.NodeUp}}
	v.GPUs = make([]sched.GPU, 2)
	spec := &sched.JobSpec{Name: "j", User: "ann", GPUs: sched.Rigid(1)}
	line := &timeline.Timeline{}
	v.Jobs = append(v.Jobs, sched.Job{Spec: spec, State: sched.Waiting, FirstStart: sched.None})
	line.Log(v, &sched.Event{Kind: sched.JobArrived, Job: 0})
	hour := sched.Time(time.Hour)
	for range 3 { // however often it is looked at
		l := line.Snapshot(hour).Losses()
		if l.All != timeline.AreaOf(2, time.Hour) || l.To != hour {
			t.Errorf("%v up to %v, want 2 GPU-hours up to an hour", l.All, l.To)
		}
		if l.By[timeline.Policy] != l.All {
			t.Errorf("%+v, want all of it idle though a job fits", l.By)
		}
	}
	if l := line.Losses(); l.All != (timeline.Area{}) {
		t.Errorf("a look at it took %v", l.All)
	}
	before := line.Snapshot(0)
	v.Jobs[0].State, v.Now = sched.Done, hour/2
	line.Log(v, &sched.Event{Kind: sched.JobCommanded, Job: 0, Time: hour / 2})
	done := line.Snapshot(hour)
	if len(before.Attempts) != 0 || before.Losses().All != (timeline.Area{}) {
		t.Error("what came later is in an earlier snapshot")
	}
	if !reflect.DeepEqual(done.Losses(), line.Losses()) {
		t.Errorf("%+v of a host whose jobs are done, want %+v", done.Losses(), line.Losses())
	}
}
