package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/realnode"
	"github.com/trainyard/trainyard/sched"
)

// lateness is up to how many seconds of work may be reported as lost although all was saved: between two tellings of
// progress a job is taken to go on as fast as before, and a machine that does much else may hold it up meanwhile.
const lateness = 10

// Ensure that Tiresias, on a real node, hands the one GPU of a long job over to one that has received less: the long
// one is asked to stop, saves, and only then the other gets the GPU; that the long one goes on later from where it was,
// and ends with exactly the weights of one that was left alone.
func TestRealTiresiasHandsOver(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{}, v1alpha1.SchedulerPolicySpec{System: "tiresias-las",
		Settings: map[string]string{"thresholds": "3", "min_run": "0", "preempt_limit": "0"}})
	r.node("real-a", 1)
	r.decide()
	// of the victim's first attempt they would take 200 s, of its second none: it is preempted on its way, however late
	const steps = 2000
	long := func(name string, pace string) *v1alpha1.TrainingJob {
		j := r.alone(r.trains(name, "--steps", strconv.Itoa(steps), "--checkpoint-every", "0", "--step-time", pace,
			"--save-time", "1s"))
		j.Spec.Checkpoint.ResumeArg = "--step-time=0s"
		return j
	}
	r.create(long("victim", "100ms"))
	r.until("victim", v1alpha1.Running)
	r.awaitStep("victim", 1, 40) // 4 s: more than the first queue has
	r.create(r.alone(r.trains("short", "--steps", "10", "--step-time", "50ms")))
	r.until("short", v1alpha1.Succeeded)
	if st := r.until("victim", v1alpha1.Succeeded); st.Attempt != 2 || st.Restarts != 1 || st.LostSeconds > lateness {
		t.Errorf("victim: %+v", st)
	}
	r.create(long("undisturbed", "0s"))
	r.until("undisturbed", v1alpha1.Succeeded)
	if got, want := r.result("victim"), r.result("undisturbed"); got != want || got.Steps != steps {
		t.Errorf("trained to %+v, want %+v as without preemption", got, want)
	}
	victim, short := r.number("victim"), r.number("short")
	var reported []string
	saved := 0
	for _, e := range r.ledger() {
		reported = append(reported, fmt.Sprintf("%s %s/%s", e.kind, e.job, e.attempt))
		switch {
		case e.kind == "end" && e.job == victim && e.attempt == "1":
			if saved = e.step; e.code != 75 || saved == 0 || saved == steps {
				t.Errorf("the victim ended with code %d at step %d, want 75 on its way", e.code, e.step)
			}
		case e.kind == "resume" && e.step != saved:
			t.Errorf("the victim went on at step %d, want %d, which it saved", e.step, saved)
		}
	}
	want := []string{"start " + victim + "/1", "end " + victim + "/1", "start " + short + "/1", "end " + short + "/1",
		"start " + victim + "/2", "resume " + victim + "/2", "end " + victim + "/2"}
	if len(reported) < len(want) || !slices.Equal(reported[:len(want)], want) {
		t.Errorf("the processes did %v, want %v", reported, want)
	}
	for attempt := range int32(2) {
		r.wantGiven("victim", attempt+1, "GPU-real-a-0")
	}
}

// Ensure that the processes of PAL's jobs, on a real node, see exactly the GPUs that the scores of their class make the
// best, and no other; and that one that is moved to faster GPUs goes on there from its checkpoint.
func TestRealPALChoosesGPUs(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{},
		v1alpha1.SchedulerPolicySpec{System: "pal", Round: metav1.Duration{Duration: time.Second},
			Settings: map[string]string{"min_run": "0", "preempt_limit": "0", "move_cost": "0", "tolerance": "0"}})
	r.node("real-a", 6)
	r.create(object(t, "GPUProfile", `{metadata: {name: real-a}, spec: {gpus: [
		{uuid: GPU-real-a-0, scores: {A: "3", B: "1"}}, {uuid: GPU-real-a-1, scores: {A: "1", B: "1"}}, {uuid: GPU-real-a-2, scores: {A: "1.5", B: "1"}},
		{uuid: GPU-real-a-3, scores: {A: "1", B: "1"}}, {uuid: GPU-real-a-4, scores: {A: "3", B: "1"}}, {uuid: GPU-real-a-5, scores: {A: "1.5", B: "1"}}]}}`))
	r.decide()
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
	eventually(t, "the single one is moved", func() bool {
		st := r.status("single")
		return st.Attempt == 2 && st.Phase == v1alpha1.Running
	})
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
		t.Error("the single one started again")
	}
}

// Ensure that EaCO, on a real node, has a job join another on its GPU by the claim that both name; that it takes it off
// at the end of an epoch when that took longer than its limit allows, while the first goes on; and that it lets it run
// once it is alone, from its checkpoint. The second job is slow in its first attempt on purpose.
func TestRealEaCOUndoesTrial(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{}, v1alpha1.SchedulerPolicySpec{System: "eaco"})
	r.node("real-a", 1)
	r.decide()
	submit := func(name string, epochs int32, wall time.Duration, args ...string) {
		j := r.trains(name, append(args, "--epoch-steps", "5", "--report-every", "1")...)
		j.Spec.Profile = v1alpha1.Profile{Model: name, Epochs: epochs}
		j.Spec.Sharing = v1alpha1.Sharing{Allowed: true, MemoryGiB: 2, UsePercent: 30}
		j.Spec.WallTime = &metav1.Duration{Duration: wall}
		j.Spec.Checkpoint.ResumeArg = "--step-time=50ms"
		r.create(j)
		r.until(name, v1alpha1.Running)
	}
	submit("first", 200_000, 100*time.Hour, "--steps", "1000000", "--step-time", "100ms")
	r.awaitStep("first", 1, 5)
	submit("second", 4, 4*time.Second, "--steps", "20", "--step-time", "2s") // 10 s an epoch, to look at it
	var claims resourcev1.ResourceClaimList
	must(t, r.api.List(t.Context(), &claims, client.InNamespace(r.space)))
	if n := len(claims.Items); n != 1 || len(claims.Items[0].Status.ReservedFor) != 2 {
		t.Errorf("%d claims: %+v, want one that two pods have", n, claims.Items)
	}
	r.awaitStep("second", 1, 1)
	at := r.step("first", 1)
	eventually(t, "the second is taken off", func() bool { return r.status("second").Phase == v1alpha1.Pending })
	r.wantGiven("first", 1, "GPU-real-a-0")
	r.wantGiven("second", 1, "GPU-real-a-0")
	r.awaitStep("first", 1, at+10)
	if st := r.status("first"); st.Attempt != 1 || st.Phase != v1alpha1.Running {
		t.Errorf("first: %+v", st)
	}
	r.remove("first")
	if st := r.until("second", v1alpha1.Succeeded); st.Attempt != 2 {
		t.Errorf("second: %+v", st)
	}
	r.wantGiven("second", 2, "GPU-real-a-0")
	if got := r.result("second"); got.Steps != 20 {
		t.Errorf("second trained to %+v", got)
	}
	undone := 0
	for _, e := range r.history() {
		if e.Kind == sched.Decided && e.Target != nil && e.Target.Why.Code == sched.WhyUndone {
			undone++
		}
	}
	if undone != 1 {
		t.Errorf("%d trials were undone, want 1", undone)
	}
}

// Ensure that BOA rents real nodes for jobs, that a job runs on one once it has booted, and that a node is given back
// once no one needs it, with no process on it.
func TestRealBOARentsAndReleases(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{}, v1alpha1.SchedulerPolicySpec{System: "boa",
		Round: metav1.Duration{Duration: time.Second}, Settings: map[string]string{"min_run": "0"}})
	const boot = 3 * time.Second
	r.create(&v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"},
		Spec: v1alpha1.GPUPoolSpec{GPUType: "NVIDIA H100 80GB HBM3", GPUsPerNode: 2,
			PricePerGPUHour: resource.MustParse("2"), Max: 2, BudgetGPUs: resource.MustParse("4"),
			Boot:     metav1.Duration{Duration: boot},
			Provider: v1alpha1.ProviderRef{Kind: "fake"}}})
	r.decide()
	jobs := []string{"job-0", "job-1"}
	for _, name := range jobs {
		j := r.alone(r.trains(name, "--steps", "200", "--step-time", "100ms"))
		j.Spec.GPUs.Min, j.Spec.Profile.Model = 2, "net"
		r.create(j)
	}
	c := cloud{r: r, up: make(map[string]*realnode.Node)}
	c.runs("the jobs are done", func() bool {
		return !slices.ContainsFunc(jobs, func(name string) bool { return r.status(name).Phase != v1alpha1.Succeeded })
	})
	c.runs("all nodes are given back", func() bool { return len(c.up) == 0 })
	if n := len(c.released); n == 0 || n > 2 {
		t.Errorf("%d nodes were rented and given back, want one or two", n)
	}
	var ordered sched.Time
	var joined []string // some are given back before they do, where they take long to boot
	left := 0
	for _, e := range r.history() {
		switch {
		case e.Kind == sched.Ordered && e.Code == int32(sched.Rent) && ordered == 0:
			ordered = e.Time
		case e.Kind == sched.NodeJoined:
			if joined = append(joined, e.NodeSpec.Name); e.Time < ordered+sched.Time(boot) {
				t.Errorf("a node was ordered at %v and there at %v, want it to boot for %v", ordered, e.Time, boot)
			}
		case e.Kind == sched.NodeLeft:
			left++
		case e.Kind == sched.AttemptEnded && e.Outcome != sched.Finished:
			t.Errorf("attempt %d of job %d ended %v: %s", e.Attempt, e.Job, e.Outcome, e.Text)
		}
	}
	if n := len(joined); ordered == 0 || n == 0 || n > len(c.released) || left != n {
		t.Errorf("nodes %v joined, %d left, machines were %v", joined, left, c.released)
	}
	for _, g := range r.witnesses() {
		node := strings.TrimSuffix(strings.TrimPrefix(g.Given[0], "GPU-"), "-0")
		if !slices.Contains(joined, node) || g.Attempt != "1" ||
			!slices.Equal(g.Given, []string{"GPU-" + node + "-0", "GPU-" + node + "-1"}) {
			t.Errorf("attempt %s of job %s had %v, want the first on both GPUs of a rented node, of %v", g.Attempt,
				g.Job, g.Given, joined)
		}
	}
}

// Ensure that a kubelet that is gone for a while, and a containerd that is killed, end nothing: processes go on, are
// known again, and are asked to stop as ever; that nothing new is started on a node that is silent; that what ended
// without a kubelet is known to have; and that what ended without containerd, which no one saw, is tried again and
// counts as no failure.
func TestRealSilenceEndsNothing(t *testing.T) {
	t.Parallel()
	r := newRealRig(t, controlplane.Options{NodeGrace: 16 * time.Second},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip"})
	node := r.node("real-a", 3)
	r.decide()
	r.create(r.alone(r.trains("long", "--steps", "1000000", "--step-time", "20ms", "--checkpoint-every", "10")))
	r.create(r.alone(r.trains("ends", "--steps", "500", "--step-time", "50ms")))
	r.until("long", v1alpha1.Running)
	r.until("ends", v1alpha1.Running)
	must(t, node.Stop("kubelet"))
	eventually(t, "the node is silent", func() bool { return !r.ready("real-a") })
	r.create(r.alone(r.trains("new", "--steps", "10")))
	eventually(t, "the new one waits", func() bool { return r.status("new").Phase == v1alpha1.Pending })
	at := r.saved("long")
	eventually(t, "the long one goes on", func() bool { return r.saved("long") >= at+50 })
	eventually(t, "the other one ends", func() bool { return len(r.ends(0)) == 1 })
	if st := r.status("new"); st.Phase != v1alpha1.Pending || st.Attempt != 0 {
		t.Errorf("the new one, for a silent node: %+v", st)
	}
	for _, name := range []string{"long", "ends"} {
		if st := r.status(name); st.Phase != v1alpha1.Running || st.Attempt != 1 {
			t.Errorf("%s, on a silent node: %+v", name, st)
		}
	}
	must(t, node.StartKubelet())
	if st := r.until("ends", v1alpha1.Succeeded); st.Attempt != 1 {
		t.Errorf("the one that ended without a kubelet: %+v", st)
	}
	r.until("new", v1alpha1.Succeeded)

	r.create(r.alone(r.trains("unseen", "--steps", "500", "--step-time", "50ms")))
	r.until("unseen", v1alpha1.Running)
	var pod corev1.Pod
	must(t, r.api.Get(t.Context(), client.ObjectKey{Namespace: r.space, Name: "unseen-1-0"}, &pod))
	container := pod.Status.ContainerStatuses[0].ContainerID
	runs := func() bool {
		is, err := node.Runs(container)
		must(t, err)
		return is
	}
	if must(t, node.Stop("containerd")); !runs() {
		t.Fatal("nothing runs in container ", container)
	}
	eventually(t, "it ends unseen", func() bool { return len(r.ends(0)) == 3 && !runs() })
	must(t, node.StartContainerd(t.Context()))
	if st := r.until("unseen", v1alpha1.Succeeded); st.Attempt != 2 {
		t.Errorf("the one that ended without containerd: %+v", st)
	}
	r.suspend("long", true)
	if st := r.until("long", v1alpha1.Pending); st.Attempt != 1 || st.LostSeconds > lateness {
		t.Errorf("the long one: %+v", st)
	}
	if n, zero, saved := len(r.witnesses()), len(r.ends(0)), r.ends(75); n != 5 || zero != 4 ||
		!slices.Equal(saved, []string{r.number("long")}) {
		t.Errorf("of %d processes %d ended, and these saved: %v; want 5, 4 and the long one", n, zero, saved)
	}
}
