package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/claims"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// siege is a cluster of two nodes with four GPUs each, of which a tenant is an enemy: he may make and change pods,
// claims and jobs in the namespace of the jobs, and nothing else. The fleet notes every GPU that two have at a time.
type siege struct {
	*rig
	enemy client.Client
}

// attacks are played one after the other on one control plane. Each leaves nothing behind.
var attacks = []struct {
	name string
	play func(s *siege)
}{
	{"claim disguised as ours", (*siege).disguisedClaim},
	{"claim takes our name first", (*siege).nameTakenFirst},
	{"pod of others names our claim", (*siege).strangerOnClaim},
	{"foreign finalizer keeps a pod", (*siege).foreignFinalizer},
	{"jobs that can never start preempt", (*siege).neverStart},
	{"webhook that is away", (*siege).webhookAway},
	{"template that no attempt can mend", (*siege).hopelessTemplate},
	{"jobs beyond the limits of the policy", (*siege).beyondLimits},
	{"limits that are passed later", (*siege).beyondLimitsLater},
	{"fields that vanish", (*siege).vanishingFields},
	{"record that cannot be read", (*siege).spoiltRecord},
	{"record of a newer schema", (*siege).newerSchema},
	{"state of the cluster that cannot be read", (*siege).spoiltCluster},
	{"up and down by a schema", (*siege).upAndDown},
}

// Ensure that what a tenant can make and change takes no GPU that is counted as free, keeps none that is, and delays no
// job of another.
func TestAttacks(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, fakenode.Options{GPUs: 4, Run: fakenode.Script(0, 50*time.Millisecond, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip", Settings: map[string]string{"min_run": "0"},
			Limits: v1alpha1.Limits{Priority: 5}})
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
	r.letIn(r.space)
	r.letIn(tenant)
	c := r.plane.Config()
	c.Impersonate.UserName = "mallory"
	enemy, err := client.New(c, client.Options{Scheme: r.api.Scheme()})
	must(t, err)
	r.serve()
	for _, a := range attacks {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			was := r.t
			r.t = t
			defer func() { r.t = was }()
			a.play(&siege{r, enemy})
		})
	}
}

// tenant is a namespace of the enemy alone.
const tenant = "mallory"

// letIn gives the enemy what a tenant may do in a namespace.
func (r *rig) letIn(space string) {
	r.t.Helper()
	everything := []string{"get", "list", "create", "update", "patch", "delete"}
	r.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "tenant"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: everything},
		{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: everything},
		{APIGroups: []string{"trainyard.dev"}, Resources: []string{"trainingjobs"}, Verbs: everything}}})
	r.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "tenant"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tenant"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}}})
}

// uid returns the UID of a job.
func (s *siege) uid(job string) types.UID {
	s.t.Helper()
	j := s.job(job, 1)
	must(s.t, s.api.Get(s.t.Context(), client.ObjectKeyFromObject(j), j))
	return j.UID
}

// disguised returns a claim of GPUs of a node that says of itself what those of an attempt do, in the form of these.
func (s *siege) disguised(name, job string, attempt int, gpus ...string) *resourcev1.ResourceClaim {
	s.t.Helper()
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.space, Name: name,
		Labels: map[string]string{v1alpha1.LabelJob: job, v1alpha1.LabelAttempt: fmt.Sprint(attempt)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "trainyard.dev/v1alpha1", Kind: "TrainingJob", Name: job,
			UID: s.uid(job)}}}}
	cel := &resourcev1.CELDeviceSelector{Expression: claims.Selector(fakenode.Driver, gpus)}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: fakenode.Driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount,
		Count: int64(len(gpus)), Selectors: []resourcev1.DeviceSelector{{CEL: cel}}}}}
	return c
}

// user returns a pod that uses a claim.
func (s *siege) user(name, claim string) *corev1.Pod {
	seconds := int64(1)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.space, Name: name}, Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: &seconds,
		ResourceClaims:                []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: &claim}},
		Containers: []corev1.Container{{Name: "c", Image: "none",
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "x"}}}}}}}
}

// does has the enemy make objects.
func (s *siege) does(list ...client.Object) {
	s.t.Helper()
	for _, o := range list {
		must(s.t, s.enemy.Create(s.t.Context(), o))
	}
}

// ends has the enemy delete objects, and waits until they are gone.
func (s *siege) ends(list ...client.Object) {
	s.t.Helper()
	for _, o := range list {
		must(s.t, client.IgnoreNotFound(s.enemy.Delete(s.t.Context(), o)))
		eventually(s.t, o.GetName()+" is gone", func() bool { return !s.there(o) })
	}
}

// there reports whether an object is there, of the UID that it has.
func (s *siege) there(o client.Object) bool {
	now := o.DeepCopyObject().(client.Object)
	return s.api.Get(s.t.Context(), client.ObjectKeyFromObject(o), now) == nil && now.GetUID() == o.GetUID()
}

// runs waits until the pod of a name runs.
func (s *siege) runs(name string) {
	s.t.Helper()
	eventually(s.t, "pod "+name+" runs", func() bool {
		p := new(corev1.Pod)
		key := types.NamespacedName{Namespace: s.space, Name: name}
		return s.api.Get(s.t.Context(), key, p) == nil && p.Status.Phase == corev1.PodRunning
	})
}

// waits has a job be there that must wait, and checks that it was not tried.
func (s *siege) waits(name string, gpus int32) {
	s.t.Helper()
	s.create(s.job(name, gpus))
	eventually(s.t, name+" has a reason to wait", func() bool { return s.status(name).Reason != "" })
	time.Sleep(time.Second) // in which it would be tried
	if st := s.status(name); st.Attempt != 0 || st.Phase != v1alpha1.Pending {
		s.t.Errorf("%s was started on GPUs that others have: %+v", name, st)
	}
}

// first waits until a job runs, in its first attempt.
func (s *siege) first(name string) v1alpha1.TrainingJobStatus {
	s.t.Helper()
	st := s.until(name, v1alpha1.Running)
	if st.Attempt != 1 {
		s.t.Errorf("%s: %+v, want it to run in its first attempt", name, st)
	}
	return st
}

// on returns the UUIDs of GPUs of a node of the rig.
func on(node int, gpus ...int) (uuids []string) {
	for _, g := range gpus {
		uuids = append(uuids, fakenode.UUID(fmt.Sprintf("node-%03d", node), g))
	}
	return uuids
}

// disguisedClaim has the enemy take GPUs by a claim with the labels, the owner and the form of ours.
func (s *siege) disguisedClaim() {
	s.create(s.job("victim", 1))
	has := uuidsOf(s.first("victim"))
	node := 0
	if slices.Contains(on(1, 0, 1, 2, 3), has[0]) {
		node = 1
	}
	rest := slices.DeleteFunc(on(node, 0, 1, 2, 3), func(g string) bool { return g == has[0] })
	loot, looter := s.disguised("loot", "victim", 1, rest...), s.user("looter", "loot")
	s.does(loot, looter)
	s.runs("looter")
	s.create(s.job("wide", 4))
	s.first("wide")
	s.waits("third", 3)
	if !s.there(loot) {
		s.t.Error("a claim that is not ours was deleted")
	}
	s.ends(looter, loot)
	s.first("third")
	for _, name := range []string{"victim", "wide", "third"} {
		s.remove(name)
	}
}

// nameTakenFirst has the enemy make the claim of an attempt before the controller does, on other GPUs.
func (s *siege) nameTakenFirst() {
	j := s.job("early", 2)
	j.Spec.Suspend = true
	s.create(j)
	s.until("early", v1alpha1.Pending)
	taken := s.disguised("early-1", "early", 1, on(1, 2, 3)...)
	s.does(taken)
	s.suspend("early", false)
	if st := s.until("early", v1alpha1.Running); st.Attempt != 2 {
		s.t.Errorf("%+v, want its first start to fail: the name of its claim is taken", st)
	}
	if !s.there(taken) {
		s.t.Error("a claim that is not ours was deleted")
	}
	s.ends(taken)
	s.remove("early")
}

// strangerOnClaim has a pod of the enemy use the claim of a job, and stay when that is gone.
func (s *siege) strangerOnClaim() {
	s.create(s.job("host", 2))
	s.first("host")
	stranger := s.user("stranger", "host-1")
	s.does(stranger)
	s.runs("stranger")
	eventually(s.t, "it is reported", func() bool {
		var list corev1.EventList
		must(s.t, s.api.List(s.t.Context(), &list, client.InNamespace(s.space)))
		return slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
			return e.Reason == "ForeignPod" && e.InvolvedObject.Name == "host-1"
		})
	})
	s.remove("host")
	s.waits("after", 7)
	s.ends(stranger)
	s.first("after")
	s.remove("after")
}

// foreignFinalizer has the enemy keep the object of a pod that has ended.
func (s *siege) foreignFinalizer() {
	s.create(s.job("sticky", 8))
	s.first("sticky")
	p := (&world{rig: s.rig}).pod("sticky", 1)
	hold := func(list string) {
		s.t.Helper()
		body := fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, list)
		must(s.t, s.enemy.Patch(s.t.Context(), p, client.RawPatch(types.MergePatchType, body)))
	}
	hold(`["example.com/mine"]`)
	s.suspend("sticky", true)
	s.until("sticky", v1alpha1.Pending)
	s.create(s.job("heir", 8))
	s.first("heir")
	if !s.there(p) {
		s.t.Error("the pod is gone in spite of its finalizer")
	}
	s.remove("heir")
	hold("null")
	s.remove("sticky")
}
