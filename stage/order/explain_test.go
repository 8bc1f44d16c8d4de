package order

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

func facts(e sched.Explainer, v *sched.View, j sched.JobID) string {
	var list []string
	e.Explain(v, j, func(f sched.Fact) {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s=%s%v %s", f.Name, f.Text, f.Value, f.Unit)))
	})
	return strings.Join(list, ", ")
}

type fixed time.Duration

func (f fixed) Remaining(*sched.View, sched.JobID) time.Duration { return time.Duration(f) }

// Ensure that each order says its figures, also of a job it has not met, and that the queues change nothing by it.
func TestExplain(t *testing.T) {
	v := &sched.View{Now: 100e9,
		Jobs: []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(2), Priority: 3}, State: sched.Waiting,
			Service: 40, Run: 20 * time.Second, Work: 5 * time.Second}}}
	usual := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}}}}
	if got := facts(FIFO{}, usual, 0); got != "" {
		t.Errorf("of the default priority: %s", got)
	}
	queues, err := NewMLFQ([]float64{30, 100}, false, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	learned, err := NewLearnedGittins(nil, true, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := facts(queues, v, 0); got != "" {
		t.Errorf("of a job it has not met: %s", got)
	}
	queues.Key(v, 0)
	learned.Key(v, 0)
	v.Now = 130e9
	before := string(queues.SaveRest(queues.SaveJob(0, nil)))
	for _, c := range []struct {
		e    sched.Explainer
		want string
	}{
		{FIFO{}, "priority=3"},
		{SJF{fixed(7 * time.Second)}, "whole-work=12 s"},
		{SRTF{fixed(7 * time.Second)}, "remaining-work=7 s"},
		{SRSF{fixed(7 * time.Second)}, "remaining-service=14 GPU-seconds"},
		{FewestGPUs{}, "width=2 GPUs"},
		{LAS{}, "attained-service=40 GPU-seconds"},
		{LAS{Seconds: true}, "attained-service=20 s"},
		{queues, "queue=2, attained-service=40 GPU-seconds, queue-limit=100 GPU-seconds, waited=30 s, " +
			"promoted-after=40 s"},
		{learned, "queue=1, attained-service=20 s, gittins-index=0, waited=30 s, sizes-learned=0 jobs"},
	} {
		if got := facts(c.e, v, 0); got != c.want {
			t.Errorf("%T: %s, want %s", c.e, got, c.want)
		}
	}
	if after := string(queues.SaveRest(queues.SaveJob(0, nil))); after != before {
		t.Error("the queues are not as they were")
	}
}
