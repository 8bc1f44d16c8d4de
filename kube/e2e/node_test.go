package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Ensure that the processes of PAL's jobs, on a real node, see exactly the GPUs that the scores of their class make the best, and no other;
// and that one that is moved to faster GPUs goes on there from its checkpoint.
func TestNodePALChoosesGPUs(t *testing.T) {
	r := newRealRig(t, v1alpha1.SchedulerPolicySpec{System: "pal", Round: metav1.Duration{Duration: time.Second},
		Settings: map[string]string{"min_run": "0", "preempt_limit": "0", "move_cost": "0", "tolerance": "0"}})
	r.node("real-a", 6)
	r.create(object(t, "GPUProfile", `{metadata: {name: real-a}, spec: {gpus: [
		{uuid: GPU-real-a-0, scores: {A: "3", B: "1"}}, {uuid: GPU-real-a-1, scores: {A: "1", B: "1"}}, {uuid: GPU-real-a-2, scores: {A: "1.5", B: "1"}},
		{uuid: GPU-real-a-3, scores: {A: "1", B: "1"}}, {uuid: GPU-real-a-4, scores: {A: "3", B: "1"}}, {uuid: GPU-real-a-5, scores: {A: "1.5", B: "1"}}]}}`))
	r.launch()
	submit := func(name, class string, gpus int32) {
		j := r.alone(r.trains(name, "--steps", "1000000", "--checkpoint-every", "0", "--step-time", "50ms"))
		j.Spec.GPUs.Min, j.Spec.Profile.Class = gpus, class
		r.create(j)
		r.until(name, v1alpha1.Running)
	}
	submit("pair", "A", 2)
	submit("single", "A", 1)
	submit("rest", "B", 1)
	r.wantGiven("pair", 1, "GPU-real-a-1", "GPU-real-a-3")
	r.wantGiven("single", 1, "GPU-real-a-2")
	r.wantGiven("rest", 1, "GPU-real-a-0")
	r.awaitStep("single", 1, 10)
	r.suspend("pair", true)
	eventually(t, "the single one is moved", func() bool { st := r.status("single"); return st.Attempt == 2 && st.Phase == v1alpha1.Running })
	r.awaitStep("single", 2, 11)
	r.wantGiven("single", 2, "GPU-real-a-1")
	if st := r.status("rest"); st.Attempt != 1 || st.Phase != v1alpha1.Running {
		t.Errorf("the one whose class is no faster elsewhere: %+v", st)
	}
	for _, name := range []string{"pair", "single", "rest"} {
		r.remove(name)
	}
	resumed := false
	for _, e := range r.ledger() {
		resumed = resumed || e.kind == "resume" && e.job == "1" && e.step >= 10
	}
	if !resumed {
		t.Error("the single one began again")
	}
}
