package local

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that an attempt which failed on a GPU that it shares spends a retry unless it kept to its figure, no longer
// had room for that, and someone next to it had more than it states; and that what that one had is reported.
func TestStarved(t *testing.T) {
	t.Parallel()
	const gpuGB = 40
	for name, c := range map[string]struct {
		own, other float32 // stated
		peak       float32 // of its own, as measured before
		has        float64 // the other
		exclusive  bool
		outcome    sched.Outcome
		text       string
		starves    bool // it spends no retry
	}{
		"starved":                      {own: 18, other: 18, has: 25, starves: true},
		"by what it had":               {own: 18, other: 18, peak: 18.5, has: 21.8, starves: true},
		"all fits":                     {own: 18, other: 18, has: 21.8},
		"the other keeps to it":        {own: 25, other: 20, has: 21},
		"above its own":                {own: 18, other: 18, peak: 19, has: 25},
		"the other states nothing":     {own: 18, has: 25, starves: true},
		"it states nothing":            {other: 18, peak: 18, has: 25, starves: true},
		"neither states anything":      {peak: 18, has: 25},
		"nothing is known of it":       {other: 18, has: 25},
		"no one has anything":          {own: 18, other: 18},
		"it has the GPU alone":         {own: 18, other: 18, has: 25, exclusive: true},
		"it finished":                  {own: 18, other: 18, has: 25, outcome: sched.Finished},
		"it was stopped":               {own: 18, other: 18, has: 25, outcome: sched.Preempted},
		"its time was over":            {own: 18, other: 18, has: 25, text: task.Timeout + "1h"},
		"it says more of how it ended": {own: 18, other: 18, has: 25, text: "killed", starves: true},
	} {
		d := &Driver{dev: &deviceWatch{list: []device.Device{gpu("A", "h", 80), gpu("B", "h", gpuGB)}},
			runs: newAttemptBook(), view: &sched.View{Jobs: make([]sched.Job, 3)}}
		d.o.Peak = func(id sched.JobID) float32 { return map[sched.JobID]float32{0: c.peak}[id] }
		for id, gb := range []float32{c.own, c.other, 0} {
			j := &d.view.Jobs[id]
			j.Spec, j.GPUs, j.Live.Share = &sched.JobSpec{GPUMemGB: gb}, []sched.GPUID{0, 1}, sched.Shared
		}
		if c.exclusive {
			d.view.Jobs[0].Live.Share = sched.Exclusive
		}
		if c.outcome == sched.NoOutcome {
			c.outcome = sched.Failed
		}
		r := report{event: sched.Event{Kind: sched.AttemptEnded, Outcome: c.outcome, Text: c.text},
			others: neighbours{"A": {1: c.has}, "B": {1: c.has}}}
		starved(d, &r)
		if !c.starves {
			if r.event.Outcome != c.outcome || r.event.Text != c.text || len(d.later) > 0 || d.Remark(1) != "" {
				t.Errorf("%s: %+v, %+v, %q, want it left as it was", name, r.event, d.later, d.Remark(1))
			}
			continue
		}
		if r.event.Outcome != sched.NodeLost || !strings.HasPrefix(r.event.Text, "job 1 next to it had ") ||
			!strings.HasSuffix(r.event.Text, c.text) {
			t.Errorf("%s: %v, %q, want it not to be its fault, and why", name, r.event.Outcome, r.event.Text)
		}
		if len(d.later) != 1 || d.later[0].Kind != sched.Measured || d.later[0].Job != 1 ||
			d.later[0].MemGB != float32(c.has) || !strings.Contains(d.Remark(1), "job 0 failed next to it") {
			t.Errorf("%s: %+v, %q, want what the other had, and that it hears of it", name, d.later, d.Remark(1))
		}
	}
}
