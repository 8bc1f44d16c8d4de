package manager

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that no more jobs are looked at than may be waited for: an array of 100,000 that is to start after another of
// as many has 10^10 pairs, and nothing is decided meanwhile.
func TestWaitsEndAtTheMost(t *testing.T) {
	t.Parallel()
	const tasks = 100
	v := &sched.View{}
	for place := range int32(tasks) {
		v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{
			Ties: sched.Ties{Array: sched.Array{Place: place, Index: place, Size: tasks}}}})
	}
	jobs := make([]jobfile.Job, mostWaits/tasks+2)
	for i := range jobs {
		jobs[i].Existing = []jobfile.Existing{{Name: "0", How: jobfile.AfterOK}}
	}
	w := waits{}
	if err := w.find(v, jobs[:mostWaits/tasks]); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	jobs[len(jobs)-1].Existing[0].Name = "999" // is reached by who goes on
	if err := w.find(v, jobs); err == nil || !strings.Contains(err.Error(), "more than 1000000 others") {
		t.Errorf("%v, want it refused for the number of pairs", err)
	}
}
