package whatif

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that others like a job that waited for how jobs end wait for none: the engine refuses a job that is tied to
// one that it is not after, and the manager would end.
func TestOthersAreTiedToNone(t *testing.T) {
	t.Parallel()
	spec := sched.JobSpec{Name: "j", GPUs: sched.Rigid(1), After: []sched.JobID{0, 1},
		Ties: sched.Ties{AfterOK: []sched.JobID{0}, AfterFail: []sched.JobID{1}}}
	p := &past{jobs: []sched.Job{{Spec: &spec}}}
	list := p.again(nil, &submission{first: 0, end: 1}, time.Minute, []time.Duration{time.Second},
		sched.Time(time.Hour))
	if len(list) != 1 {
		t.Fatalf("%d jobs, want 1", len(list))
	}
	if tied := list[0].Spec.Untied(); tied != sched.None || spec.Untied() != sched.None {
		t.Errorf("tied to job %d, want to none; the job itself to %d", tied, spec.Untied())
	}
}
