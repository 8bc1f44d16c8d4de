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

// undead gives GPUs to jobs that are done, in addition to what a system decides.
type undead struct{ sched.Decider }

func (u undead) Decide(v *sched.View, d *sched.Desired) {
	u.Decider.Decide(v, d)
	for id := range v.Jobs {
		if v.Jobs[id].State == sched.Done {
			d.Give(sched.JobID(id), []sched.GPUID{sched.GPUID(id)}, sched.Reason{})
		}
	}
}

// Ensure that nothing starts a job again that is done, neither its user, by whatever command, nor a system: recorders
// drop the attempts of what is done.
func TestDoneStaysDone(t *testing.T) {
	tr := &trace.Trace{Jobs: []trace.Job{
		{Spec: sched.JobSpec{Name: "short", GPUs: sched.Rigid(1)}, Duration: time.Minute},
		{Spec: sched.JobSpec{Name: "gone", GPUs: sched.Rigid(1)}, Duration: time.Hour},
		{Spec: sched.JobSpec{Name: "long", GPUs: sched.Rigid(1)}, Duration: time.Hour}}}
	c, err := cluster.Load("1x4")
	if err != nil {
		t.Fatal(err)
	}
	inject := []sched.Event{{Time: 30 * second, Kind: sched.JobCommanded, Job: 1, Code: int32(sched.CancelJob)}}
	for at, command := range []sched.Command{sched.RequeueJob, sched.PauseJob, sched.ResumeJob, sched.RequeueJob} {
		for job := range sched.JobID(2) {
			inject = append(inject, sched.Event{Time: sched.Time(120+at) * second, Kind: sched.JobCommanded, Job: job,
				Code: int32(command)})
		}
	}
	d, err := sim.New(tr, c, sim.Options{Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	over, refused := make(map[sched.JobID]bool), 0
	note := sinkFunc(func(v *sched.View, e *sched.Event) {
		switch {
		case e.Kind == sched.Refused:
			refused++
		case e.Kind == sched.JobCommanded:
		case e.Job >= 0 && over[e.Job]:
			t.Errorf("%v of job %d, which is done", e.Kind, e.Job)
		}
		for id := range v.Jobs {
			over[sched.JobID(id)] = v.Jobs[id].State == sched.Done
		}
	})
	dec := undead{pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}})}
	if err = engine.Run(t.Context(), engine.NewState(eventlog.Header{}), d, dec,
		engine.Options{Sinks: []eventlog.Sink{note}}); err != nil {
		t.Fatal(err)
	}
	if refused == 0 || !over[0] || !over[1] || !over[2] {
		t.Errorf("%d times refused, done %v, want some and all", refused, over)
	}
}

// Ensure that a job that its user pauses and lets go on before its attempt has stopped was not stopped for others, and
// that one that is stopped for others was, also if its user pauses it and lets it go on meanwhile. It is kept with the
// state.
func TestPauseThatIsTakenBackIsNotForOthers(t *testing.T) {
	tr := &trace.Trace{Jobs: []trace.Job{
		{Spec: sched.JobSpec{Name: "own", GPUs: sched.Rigid(1)}, Duration: time.Minute},
		{Spec: sched.JobSpec{Name: "long", GPUs: sched.Rigid(2)}, Duration: time.Hour},
		{Spec: sched.JobSpec{Name: "slim", GPUs: sched.Rigid(1), Submit: 200 * second}, Duration: time.Minute}}}
	c, err := cluster.Load("1x2")
	if err != nil {
		t.Fatal(err)
	}
	do := func(at sched.Time, job sched.JobID, c sched.Command) sched.Event {
		return sched.Event{Time: at * second, Kind: sched.JobCommanded, Job: job, Code: int32(c)}
	}
	d, err := sim.New(tr, c, sim.Options{Runtime: sim.Runtime{StopDelay: 10 * time.Second}, Inject: []sched.Event{
		do(5, 0, sched.PauseJob), do(6, 0, sched.ResumeJob),
		do(203, 1, sched.PauseJob), do(204, 1, sched.ResumeJob)}})
	if err != nil {
		t.Fatal(err)
	}
	ended := map[sched.JobID]bool{} // whether for others
	note := sinkFunc(func(v *sched.View, e *sched.Event) {
		if e.Kind != sched.AttemptEnded || e.Outcome != sched.Preempted {
			return
		}
		text, bad := json.Marshal(v.Jobs[e.Job])
		var again sched.Job
		if bad == nil {
			bad = json.Unmarshal(text, &again)
		}
		ended[e.Job] = v.Jobs[e.Job].ForOthers(e.Outcome)
		if bad != nil || again.ForOthers(e.Outcome) != ended[e.Job] {
			t.Errorf("job %d: a copy says otherwise, %v", e.Job, bad)
		}
	})
	dec := pipeline.New(pipeline.Stages{Order: order.FewestGPUs{}, Place: place.Count{}, Preempt: true})
	s := engine.NewState(eventlog.Header{})
	if err = engine.Run(t.Context(), s, d, dec, engine.Options{Sinks: []eventlog.Sink{note}}); err != nil {
		t.Fatal(err)
	}
	if len(ended) != 2 || ended[0] || !ended[1] {
		t.Errorf("stopped for others: %v, want job 1 alone", ended)
	}
	own, long := s.View().Jobs[0].Loss(), s.View().Jobs[1].Loss()
	if own.Stops != 0 || own.Work != 0 || long.Stops != 1 {
		t.Errorf("own lost %+v, long %+v", own, long)
	}
}
