package past

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/whatif/whatiftest"
)

// FuzzReadHistory: whatever a log says, there is an error or a history whose jobs are whole and add up.
func FuzzReadHistory(f *testing.F) {
	f.Add(`{"schema":"trainyard.log/v4"}` + "\n")
	s := (&whatiftest.Scene{System: "fifo"}).Node(1, 0).Job(10, sched.JobSpec{GPUs: sched.Rigid(1)}).Job(5,
		sched.JobSpec{GPUs: sched.Rigid(1)})
	f.Add(s.Log(f))
	f.Fuzz(func(t *testing.T, log string) {
		r, err := eventlog.NewReader(strings.NewReader(log), "log")
		if err != nil {
			return
		}
		h, err := ReadHistory(r, 0, nil)
		if err != nil {
			return
		}
		if n := len(h.Jobs); n != len(h.Trace.Jobs) || n != h.Ended+h.Censored || n == 0 {
			t.Errorf("%d jobs, %d in the trace, %d ended, %d censored", n, len(h.Trace.Jobs), h.Ended, h.Censored)
		}
		for i := range h.Trace.Jobs {
			if j := &h.Trace.Jobs[i]; j.Duration < 0 || j.Spec.Name == "" ||
				i > 0 && j.Spec.Submit < h.Trace.Jobs[i-1].Spec.Submit {
				t.Errorf("job %d: %+v", i, j)
			}
		}
	})
}
