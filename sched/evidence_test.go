package sched

import (
	"testing"
	"time"
)

// Ensure that who may be stopped for others goes by the request first, then by the evidence, and that under the rule of
// published systems all may be.
func TestProtects(t *testing.T) {
	shows := map[Evidence]bool{NoEvidence: false, Declared: true, Seen: true, Proven: true, SavesNot: false,
		ResumesNot: false}
	for e, known := range shows {
		for request, want := range map[Preemptible]bool{AfterSave: !known, AlwaysPreempt: false, NeverPreempt: true} {
			j := Job{Evidence: e, Spec: &JobSpec{Stops: Stops{Preempt: request}, GPUs: Range{1, 2, 4}}}
			if got := LeaveUnsaved.Protects(&j); got != want {
				t.Errorf("%v, preemptible %v: protected %t, want %t", e, request, got, want)
			}
			if StopUnsaved.Protects(&j) {
				t.Errorf("%v, preemptible %v: protected where all may be stopped", e, request)
			}
			width := map[bool]Range{true: {2, 2, 2}, false: {1, 2, 4}}[want]
			if got := LeaveUnsaved.Widths(&j); got != width {
				t.Errorf("%v, preemptible %v: widths %v, want %v", e, request, got, width)
			}
		}
	}
}

// Ensure that a job that lost work to others is left alone until it has done twice that, and that what is not proven to
// be kept counts as lost.
func TestOwes(t *testing.T) {
	const second = time.Second
	at := func(s int) Time { return Time(time.Duration(s) * second) }
	for name, c := range map[string]struct {
		loss Loss
		rate float64
		want Time
	}{
		"nothing lost":       {Loss{}, 1, 0},
		"lost":               {Loss{Work: 3 * second}, 1, at(100 + 6)},
		"not proven":         {Loss{Unproven: 3 * second}, 1, at(100 + 6)},
		"both":               {Loss{Work: 3 * second, Unproven: 2 * second}, 1, at(100 + 10)},
		"at double speed":    {Loss{Work: 3 * second}, 2, at(100 + 3)},
		"claimed and proven": {Loss{Claimed: 9 * second}, 1, 0},
	} {
		j := Job{Attempt: Running, Up: true, LastStart: at(100), WorkFrom: at(100), Rate: c.rate,
			Spec: &JobSpec{GPUs: Rigid(1)}, GPUs: []GPUID{0}}
		j.SetLoss(c.loss)
		if got := j.Owes(at(100)); got != c.want {
			t.Errorf("%s: until %v, want %v", name, got, c.want)
		}
	}
}
