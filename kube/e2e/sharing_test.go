package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that jobs which share GPUs do so by a claim for each GPU, which both own; that one which leaves, by order or
// by its end, leaves the other undisturbed; and that the claims go with the last. A controller that comes again in
// between finds all as it is.
func TestSharing(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 100*time.Millisecond, 0)},
		v1alpha1.SchedulerPolicySpec{System: "gandiva"})
	r.serve()
	shares := func(j *v1alpha1.TrainingJob) {
		j.Spec.Profile.Model, j.Spec.Sharing = "resnet50", v1alpha1.Sharing{Allowed: true, MemoryGiB: 20}
	}
	r.create(r.job("first", 2, shares))
	r.until("first", v1alpha1.Running)
	r.create(r.job("second", 2, shares))
	second := r.until("second", v1alpha1.Running)
	if with := second.Allocation[0].SharedWith; !slices.Equal(with, []string{"lab/first"}) ||
		!slices.Equal(uuidsOf(second), uuidsOf(r.status("first"))) {
		t.Errorf("second: %+v", second)
	}
	eventually(t, "the first hears of the second", func() bool {
		with := r.status("first").Allocation[1].SharedWith
		return slices.Equal(with, []string{"lab/second"})
	})
	r.slots(2, "first", "second")
	r.kill()
	r.serve()
	r.create(r.job("third", 2)) // shares with no one
	eventually(t, "the third waits", func() bool { return r.status("third").Reason != "" })

	r.suspend("first", true)
	r.until("first", v1alpha1.Pending)
	r.slots(2, "second")
	r.suspend("first", false)
	if st := r.until("first", v1alpha1.Running); st.Attempt != 2 {
		t.Errorf("first: %+v", st)
	}
	r.slots(2, "first", "second")
	r.remove("first")
	r.slots(2, "second")
	eventually(t, "the second is alone", func() bool { return len(r.status("second").Allocation[0].SharedWith) == 0 })
	if st := r.status("second"); st.Attempt != 1 || st.Phase != v1alpha1.Running {
		t.Errorf("second, once more alone: %+v", st)
	}
	r.remove("second")
	r.until("third", v1alpha1.Running)
	r.slots(0)
}

// slots waits until there are so many claims of GPUs that jobs share, each owned by these jobs and reserved for their
// pods.
func (r *rig) slots(n int, owners ...string) {
	r.t.Helper()
	var list resourcev1.ResourceClaimList
	eventually(r.t, strings.Join(owners, " and ")+" own the claims of GPUs", func() bool {
		if r.api.List(r.t.Context(), &list, client.InNamespace(r.space), client.HasLabels{claims.LabelSlot}) != nil ||
			len(list.Items) != n {
			return false
		}
		for i := range list.Items {
			c := &list.Items[i]
			var jobs, pods []string
			for _, o := range c.OwnerReferences {
				jobs = append(jobs, o.Name)
			}
			for _, p := range c.Status.ReservedFor {
				pods = append(pods, strings.Split(p.Name, "-")[0])
			}
			slices.Sort(jobs)
			slices.Sort(pods)
			if !slices.Equal(jobs, owners) || !slices.Equal(pods, owners) || c.Status.Allocation == nil ||
				len(c.Status.Allocation.Devices.Results) != 1 {
				return false
			}
		}
		return true
	})
}

// Ensure that kube-scheduler takes nothing from others for pods of jobs: they have a class by which it may not, unless
// their template names another.
func TestPriorityClass(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 1}, v1alpha1.SchedulerPolicySpec{System: "fifo",
		Limits: v1alpha1.Limits{PriorityClasses: []string{"calm"}}})
	never := corev1.PreemptNever
	r.create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "calm"}, Value: 5,
		PreemptionPolicy: &never})
	r.serve()
	for name, class := range map[string]string{"ours": "", "own": "calm"} {
		r.create(r.job(name, 1, func(j *v1alpha1.TrainingJob) { j.Spec.Template.Spec.PriorityClassName = class }))
		r.until(name, v1alpha1.Running)
		var p corev1.Pod
		must(t, r.api.Get(t.Context(), client.ObjectKeyFromObject((&world{rig: r}).pod(name, 1)), &p))
		switch s := &p.Spec; {
		case class == "" && (s.PriorityClassName != "trainyard" || *s.Priority != 0 || s.PreemptionPolicy == nil ||
			*s.PreemptionPolicy != corev1.PreemptNever):
			t.Errorf("%s: class %s, priority %v, preemption %v", name, s.PriorityClassName, *s.Priority,
				s.PreemptionPolicy)
		case class != "" && s.PriorityClassName != class:
			t.Errorf("%s: class %s, want that of its template", name, s.PriorityClassName)
		}
		r.remove(name)
	}
}
