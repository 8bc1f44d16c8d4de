package system_test

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that under every system, and every order of those that take one, a job for which there is room does not wait
// on for a wide one before it that is cancelled or paused: it starts long before the job that runs ends.
func TestWithdrawnJobsKeepNothing(t *testing.T) {
	const sec = sched.Time(time.Second)
	for _, command := range []sched.Command{sched.CancelJob, sched.PauseJob} {
		ofEach(t, system.PriorityOwn, func(info *system.Info, settings map[string]string) {
			jobs := []trace.Job{arriving(0, 30_000, 0), arriving(10, 600, 0), arriving(20, 60, 0)}
			jobs[1].Spec.GPUs = sched.Rigid(4)
			c, err := cluster.Load("1x4")
			if err != nil {
				t.Fatal(err)
			}
			d, err := sim.New(&trace.Trace{Jobs: jobs}, c, sim.Options{Inject: []sched.Event{
				{Time: 700 * sec, Kind: sched.JobCommanded, Job: 1, Code: int32(command)},
				{Time: 50_000 * sec, Kind: sched.JobCommanded, Job: 1, Code: int32(sched.ResumeJob)}}})
			if err != nil {
				t.Fatal(err)
			}
			h := eventlog.Header{System: info.Name, Settings: settings, Types: []string{"gpu"}, NodeGPUs: 4, GPUs: 4,
				Budget: 4}
			work := (&trace.Trace{Jobs: jobs}).Oracle()
			sys, err := system.Begin(&h, system.Knowledge{Work: work, Scores: scores()}, nil)
			if err != nil {
				t.Fatalf("%s: %v", info.Name, err)
			}
			state := engine.NewState(h)
			if err = engine.Run(t.Context(), state, d, sys.Decider, engine.Options{}); err != nil {
				t.Fatalf("%s %v: %v", info.Name, settings, err)
			}
			if at := state.View().Jobs[2].FirstStart; at < 0 || at > 2000*sec {
				t.Errorf("%s %v: starts at %v, want soon after the job before it is gone (%v)", info.Name, settings,
					time.Duration(at), command)
			}
		})
	}
}
