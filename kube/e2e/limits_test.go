package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// large has a job be of so many bytes, as JSON and as its user made it.
func (s *siege) large(j *v1alpha1.TrainingJob, size int) {
	s.t.Helper()
	pad := &j.Spec.Template.Spec.Containers[0]
	pad.Args = []string{""}
	seen := j.DeepCopy()
	must(s.t, s.enemy.Create(s.t.Context(), seen, client.DryRunAll)) // with what the API server fills in
	text, err := json.Marshal(&v1alpha1.TrainingJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: seen.Namespace, Name: seen.Name}, Spec: seen.Spec})
	must(s.t, err)
	pad.Args[0] = strings.Repeat("x", size-len(text))
}

// refused waits until a job of the enemy has failed without an attempt, and checks that its status, its condition and
// an Event say why.
func (s *siege) refused(name, reason, why string) {
	s.t.Helper()
	st := s.until(name, v1alpha1.Failed)
	failed := meta.FindStatusCondition(st.Conditions, controller.HasFailed)
	if !strings.Contains(st.Reason, why) || failed == nil || !strings.Contains(failed.Message, why) ||
		st.Attempt != 0 {
		s.t.Errorf("%s: %+v, want %q, with a condition, and no attempt", name, st, why)
	}
	s.untilReported(name, "Warning "+reason)
}

// beyondLimits has the enemy submit jobs that ask for more than the policy allows, where no admission policy is in
// between.
func (s *siege) beyondLimits() {
	still := s.honest()
	lab := s.space
	s.space = tenant
	for name, test := range map[string]struct {
		change func(j *v1alpha1.TrainingJob)
		want   string
	}{
		"first-of-all": {func(j *v1alpha1.TrainingJob) { j.Spec.Priority = 6 },
			"priority 6, want at most limits.priority, 5"},
		"slow": {func(j *v1alpha1.TrainingJob) { j.Spec.Checkpoint.GraceSeconds = 601 },
			"checkpoint.graceSeconds 601, want at most limits.grace, 10m0s"},
		"critical": {func(j *v1alpha1.TrainingJob) {
			j.Spec.Template.Spec.PriorityClassName = "system-node-critical"
		}, `template.spec.priorityClassName "system-node-critical", ` +
			`want one of limits.priorityClasses, which has none`},
		"unscheduled": {func(j *v1alpha1.TrainingJob) { j.Spec.Template.Spec.SchedulerName = "mine" },
			`template.spec.schedulerName "mine", want default-scheduler or one of limits.schedulers, which has none`},
		"too-large": {func(j *v1alpha1.TrainingJob) { s.large(j, 64<<10+1) },
			"it has 65537 bytes, want at most limits.jobBytes, 65536"},
	} {
		s.does(s.urgent(name, 8, test.change))
		s.refused(name, "OverLimit", test.want)
		s.remove(name)
	}
	s.does(s.urgent("just-so", 8, func(j *v1alpha1.TrainingJob) {
		j.Spec.Suspend = true
		s.large(j, 64<<10)
	}))
	s.until("just-so", v1alpha1.Pending)
	s.remove("just-so")
	still()
	s.setPolicy(`{limits: {jobsPerNamespace: 3}}`)
	paused := func(j *v1alpha1.TrainingJob) { j.Spec.Suspend = true }
	flood := []string{"flood-0", "flood-1", "flood-2"}
	for _, name := range flood {
		s.does(s.urgent(name, 1, paused))
		s.until(name, v1alpha1.Pending)
	}
	s.does(s.urgent("one-more", 1, paused))
	s.refused("one-more", "OverLimit",
		"3 jobs of namespace "+tenant+" are not done, want at most limits.jobsPerNamespace, 3")
	s.space = lab // that others have many delays no one
	s.create(s.job("next", 1, paused))
	s.until("next", v1alpha1.Pending)
	s.remove("next")
	s.space = tenant
	for _, name := range append(flood, "one-more") {
		s.remove(name)
	}
	s.setPolicy(`{limits: {jobsPerNamespace: null}}`)
	s.space = lab
	still()
	s.remove("honest")
}

// beyondLimitsLater has the enemy change jobs that have arrived, and list a class that preempts as one that is allowed.
func (s *siege) beyondLimitsLater() {
	lab := s.space
	s.space = tenant
	defer func() { s.space = lab }()
	s.setPolicy(`{limits: {priorityClasses: [system-node-critical, trainyard]}}`)
	eventually(s.t, "the policy says which class cannot be allowed", func() bool {
		return strings.Contains(s.policy().Status.Message, "limits.priorityClasses allows less than it names: "+
			"PriorityClass system-node-critical preempts")
	})
	s.does(s.urgent("critical", 8, func(j *v1alpha1.TrainingJob) {
		j.Spec.Template.Spec.PriorityClassName = "system-node-critical"
	}))
	s.refused("critical", "OverLimit", "want one of limits.priorityClasses: trainyard")
	s.remove("critical")
	j := s.urgent("later", 1, func(j *v1alpha1.TrainingJob) {
		j.Spec.Suspend, j.Spec.Template.Spec.PriorityClassName = true, "trainyard"
	})
	s.does(j)
	s.until("later", v1alpha1.Pending)
	s.patch(j, `{spec: {priority: 6}}`)
	s.untilReported("later", "Warning OverLimit")
	s.patch(j, `{spec: {priority: 5, suspend: false, checkpoint: {graceSeconds: 3600}}}`)
	s.first("later")
	p := (&world{rig: s.rig}).pod("later", 1)
	must(s.t, s.api.Get(s.t.Context(), client.ObjectKeyFromObject(p), p))
	if got := p.Spec.TerminationGracePeriodSeconds; got == nil || *got != 600 {
		s.t.Errorf("a grace of %v, want 600 s", got)
	}
	s.remove("later")
	s.setPolicy(`{limits: {priorityClasses: null}}`)
}

// vanishingFields has a job say things that have no effect: its user hears of that, once, and it runs.
func (s *siege) vanishingFields() {
	j := s.job("vague", 1)
	j.Annotations = map[string]string{
		"trainyard.dev/gpus": "7", "other.dev/x": "y",
		corev1.LastAppliedConfigAnnotation: `{"spec": {"prioritty": 3, "gpus": {"min": 1, "maxx": 2}, "template": ` +
			`{"spec": {"containers": [{"name": "train", "image": "none"}]}}}}`,
	}
	s.does(j)
	s.first("vague")
	const want = `annotation trainyard.dev/gpus is not known, and has no effect; the API server dropped from spec ` +
		`what it does not know: unknown field "prioritty", unknown field "gpus.maxx"`
	heard := func() (said []string) {
		return slices.DeleteFunc(s.events("vague"), func(e string) bool { return !strings.Contains(e, " Ignored ") })
	}
	eventually(s.t, "its user hears of it", func() bool { return len(heard()) > 0 })
	s.kill()
	s.serve()
	s.suspend("vague", true)
	s.until("vague", v1alpha1.Pending) // the new leader has looked at it
	if got := heard(); len(got) != 1 || got[0] != "Warning Ignored x1: "+want {
		s.t.Errorf("%q, want %q, once", got, want)
	}
	s.remove("vague")
}

// Ensure that who submits a job learns at once which limit of the policy it passes, if the manifests are applied, and
// that a tenant cannot mark objects as parts of a job. The controller may, under whatever account.
func TestAdmissionPolicies(t *testing.T) {
	t.Parallel()
	r := rigOn(t, controlplane.Start(t, controlplane.Options{}), 1, fakenode.Options{GPUs: 2})
	r.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.SchedulerPolicySpec{Limits: v1alpha1.Limits{Priority: 5, Schedulers: []string{"theirs"}}}})
	r.letIn(r.space)
	r.bind("trainyard", account)
	r.user = account
	r.serve()
	c := r.plane.Config()
	c.Impersonate.UserName = "mallory"
	enemy, err := client.New(c, client.Options{Scheme: r.api.Scheme()})
	must(t, err)
	s := &siege{r, enemy}
	never := func(j *v1alpha1.TrainingJob) { j.Spec.Priority = 6 }
	eventually(t, "the policy is in force", func() bool {
		return enemy.Create(t.Context(), r.job("never", 1, never), client.DryRunAll) != nil
	})
	tooMuch := []struct {
		change func(j *v1alpha1.TrainingJob)
		want   string
	}{
		{never, "spec.priority: Invalid value: 6: want at most limits.priority of the SchedulerPolicy, 5"},
		{func(j *v1alpha1.TrainingJob) { j.Spec.Checkpoint.GraceSeconds = 601 },
			"spec.checkpoint.graceSeconds: Invalid value: 601: want at most limits.grace of the SchedulerPolicy, 10m"},
		{func(j *v1alpha1.TrainingJob) { j.Spec.Template.Spec.PriorityClassName = "system-node-critical" },
			`spec.template.spec.priorityClassName: Invalid value: "system-node-critical": ` +
				`want one of limits.priorityClasses of the SchedulerPolicy`},
		{func(j *v1alpha1.TrainingJob) { j.Spec.Template.Spec.SchedulerName = "mine" },
			`spec.template.spec.schedulerName: Invalid value: "mine": ` +
				`want default-scheduler, or one of limits.schedulers of the SchedulerPolicy`},
	}
	for _, test := range tooMuch {
		err := enemy.Create(t.Context(), r.job("never", 1, test.change))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
	good := r.job("victim", 1, func(j *v1alpha1.TrainingJob) {
		j.Spec.Priority, j.Spec.Template.Spec.SchedulerName, j.Spec.Suspend = 5, "theirs", true
	})
	s.does(good)
	for _, body := range []string{`{"spec": {"priority": 6}}`, `{"spec": {"checkpoint": {"graceSeconds": 3600}}}`} {
		patch := client.RawPatch("application/merge-patch+json", []byte(body))
		if err := enemy.Patch(t.Context(), good, patch); err == nil ||
			!strings.Contains(err.Error(), "of the SchedulerPolicy") {
			t.Errorf("%s: %v", body, err)
		}
	}
	s.marks()
}

// marks has the enemy make objects that say of themselves that they are parts of a job, and change those that are.
func (s *siege) marks() {
	t := s.t
	t.Helper()
	s.create(s.job("runs", 1)) // the controller may
	s.first("runs")
	p := (&world{rig: s.rig}).pod("runs", 1)
	owned := s.user("looter", "loot")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "trainyard.dev/v1alpha1", Kind: "TrainingJob",
		Name: "victim", UID: s.uid("victim")}}
	labeled := s.user("looter", "loot")
	labeled.Labels = map[string]string{v1alpha1.LabelRank: "0"}
	for _, o := range []client.Object{s.disguised("loot", "victim", 1, on(0, 1)...), owned, labeled} {
		if err := s.enemy.Create(t.Context(), o); err == nil || !strings.Contains(err.Error(), "only Trainyard's") {
			t.Errorf("%T %s was made: %v", o, o.GetName(), err)
		}
	}
	queued := s.user("queued", "loot")
	queued.Labels = map[string]string{"trainyard.dev/queue": "team"}
	must(t, s.enemy.Create(t.Context(), queued, client.DryRunAll))
	for _, body := range []string{`{"metadata": {"labels": {"trainyard.dev/job": null}}}`,
		`{"metadata": {"labels": {"trainyard.dev/attempt": "7"}}}`} {
		patch := client.RawPatch("application/merge-patch+json", []byte(body))
		err := s.enemy.Patch(t.Context(), p, patch)
		if err == nil || !strings.Contains(err.Error(), "only Trainyard's") {
			t.Errorf("%s: %v", body, err)
		}
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"mine": "x"}}}`))
	must(t, s.enemy.Patch(t.Context(), p, patch))
	s.remove("runs")
}
