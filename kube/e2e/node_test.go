package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// Ensure that Tiresias, on a real node, hands the one GPU of a long job over to one that has received less: the long one is told to
// stop, saves, and only then the other gets the GPU; that the long one goes on later from where it was, and ends with exactly the weights
// of one that was left alone.
func TestNodeTiresiasHandsOver(t *testing.T) {
	r := newRealRig(t, v1alpha1.SchedulerPolicySpec{System: "tiresias-las", Settings: map[string]string{"thresholds": "3", "min_run": "0", "preempt_limit": "0"}})
	r.node("real-a", 1)
	r.launch()
	long := func(name string, pace string) *v1alpha1.TrainingJob {
		return r.alone(r.trains(name, "--steps", "150", "--checkpoint-every", "0", "--step-time", pace, "--save-time", "1s"))
	}
	r.create(long("victim", "100ms"))
	r.until("victim", v1alpha1.Running)
	r.awaitStep("victim", 1, 40) // 4 s: more than the first queue has
	r.create(r.alone(r.trains("short", "--steps", "10", "--step-time", "50ms")))
	r.until("short", v1alpha1.Succeeded)
	if st := r.until("victim", v1alpha1.Succeeded); st.Attempt != 2 || st.Restarts != 1 || st.LostSeconds > 1 {
		t.Errorf("victim: %+v", st)
	}
	r.create(long("undisturbed", "0s"))
	r.until("undisturbed", v1alpha1.Succeeded)
	if got, want := r.result("victim"), r.result("undisturbed"); got != want || got.Steps != 150 {
		t.Errorf("trained to %+v, want %+v as without preemption", got, want)
	}
	victim, short := r.number("victim"), r.number("short")
	var told []string
	saved := 0
	for _, e := range r.ledger() {
		told = append(told, fmt.Sprintf("%s %s/%s", e.kind, e.job, e.attempt))
		switch {
		case e.kind == "end" && e.job == victim && e.attempt == "1":
			if saved = e.step; e.code != 75 || saved == 0 || saved == 150 {
				t.Errorf("the victim ended with code %d at step %d, want 75 on its way", e.code, e.step)
			}
		case e.kind == "resume" && e.step != saved:
			t.Errorf("the victim went on at step %d, want %d, which it saved", e.step, saved)
		}
	}
	want := []string{"begin " + victim + "/1", "end " + victim + "/1", "begin " + short + "/1", "end " + short + "/1", "begin " + victim + "/2", "resume " + victim + "/2", "end " + victim + "/2"}
	if len(told) < len(want) || !slices.Equal(told[:len(want)], want) {
		t.Errorf("the processes did %v, want %v", told, want)
	}
	for attempt := range int32(2) {
		r.wantGiven("victim", attempt+1, "GPU-real-a-0")
	}
}
