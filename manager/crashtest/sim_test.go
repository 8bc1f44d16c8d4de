package crashtest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// simError is how far the average JCT of a simulation of a live run may lie from that of the run.
const simError = 0.05

// Promise 12: a simulation of what a daemon was given has the JCTs that its jobs had, within 5 percent on average. The
// simulation knows how long each job held its slots; that it had to wait, and for how long, it finds itself.
// (TestPromise12ReplayOfRealJobs in cmd/trainyard has several systems decide again what they decided live.)
func TestPromise12SimulationHasTheJCTsOfTheLiveRun(t *testing.T) {
	for _, system := range []string{"fifo", "fifo-skip"} {
		t.Run(system, func(t *testing.T) {
			s := &served{daemons: newDaemons(t, 4, "--system", system)}
			l := s.up()
			var file strings.Builder
			file.WriteString("jobs:\n")
			for i := range 12 { // more than fit, at once and later
				fmt.Fprintf(&file, "  - {name: j%d, gpus: %d, submit: %dms, command: [sleep, '%.2f']}\n", i, 1+i*i%4,
					320*(i/3), .5+.4*float64(i%5))
			}
			s.submit(file.String())
			for i := range 12 {
				s.until(fmt.Sprintf("j%d", i), "done")
			}
			s.keepLog()
			s.daemons.end(l)
			b := accounts(t, s)
			jobs := new(trace.Trace)
			live := make([]time.Duration, 12)
			begun := sched.Time(0)
			s.fold(t, func(v *sched.View, e *sched.Event) {
				if e.Kind != sched.JobArrived {
					if e.Kind == sched.AttemptEnded {
						live[e.Job] = e.Happened().Sub(max(v.Jobs[e.Job].Spec.NotBef, v.Jobs[e.Job].Arrived))
					}
					return
				}
				if e.Job == 0 {
					begun = e.Time
				}
				spec := *e.Spec
				held := b.held[e.Job] / float64(spec.GPUs.Want)
				spec.Submit, spec.NotBef, spec.Task = max(e.Spec.NotBef-begun, 0), 0, ""
				jobs.Jobs = append(jobs.Jobs,
					trace.Job{Spec: spec, Duration: time.Duration(held * float64(time.Second))})
			})
			sum := 0.0
			for _, d := range live {
				sum += d.Seconds()
			}
			got, want := simulated(t, jobs, system), sum/12
			t.Logf("%s: average JCT %.3f s live, %.3f s simulated (%+.1f %%)", system, want, got, 100*(got/want-1))
			if math.Abs(got/want-1) > simError {
				t.Errorf("the simulation is off by %.1f %%, want at most %.0f", 100*(got/want-1), 100*simError)
			}
		})
	}
}

// simulated returns the average JCT of a simulation in seconds.
func simulated(t *testing.T, jobs *trace.Trace, system string) float64 {
	t.Helper()
	machine, err := cluster.Load("1x4")
	if err != nil {
		t.Fatal(err)
	}
	rec := metrics.NewRecorder(len(jobs.Jobs))
	sim := simulate.Request{Trace: jobs, Cluster: machine, System: system}
	sim.Sinks = append(sim.Sinks, rec)
	if _, err := sim.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := range rec.Jobs {
		sum += rec.Jobs[i].JCT().Seconds()
	}
	return sum / float64(len(rec.Jobs))
}
