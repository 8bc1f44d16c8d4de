package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/config"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
	"github.com/trainyard/trainyard/kube/provider"
)

// manifests are the objects that `trainyard-kube manifests` prints, in order.
func manifests(t testing.TB) (list []*unstructured.Unstructured) {
	t.Helper()
	for _, doc := range strings.Split(string(config.CRDs)+string(config.Install), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// install applies them. No one runs the controller's image here.
func install(t testing.TB, api client.Client) {
	t.Helper()
	for _, o := range manifests(t) {
		if o.GetKind() == "Deployment" {
			if err := unstructured.SetNestedField(o.Object, int64(0), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
		}
		if err := api.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// Ensure that the one file can be applied at once: nothing in it needs what is made by it to be known, and kubectl's
// note of what was applied fits each object. And that those who may edit a namespace may submit jobs, and no more.
func TestManifests(t *testing.T) {
	api := apiOf(t)
	list := manifests(t)
	for _, o := range list {
		if o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
			t.Errorf("%s %s is of a definition in the same file: kubectl apply fails the first time", o.GetKind(),
				o.GetName())
		}
		text, err := json.Marshal(o)
		if err != nil || len(text) >= 262144 {
			t.Errorf("%s %s: %d bytes, %v", o.GetKind(), o.GetName(), len(text), err)
		}
		o.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(text)})
		if err := api.Create(t.Context(), o.DeepCopy(), client.DryRunAll); err != nil &&
			!apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	install(t, api)
	must(t, api.Create(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}}}))
	c := controlplane.Shared(t).Config()
	c.Impersonate.UserName = "alice"
	alice, err := client.New(c, client.Options{Scheme: api.Scheme()})
	must(t, err)
	eventually(t, "alice may submit a job", func() bool {
		return alice.Create(t.Context(), object(t, "TrainingJob", `{}`), client.DryRunAll) == nil
	})
	if err := alice.Create(t.Context(), object(t, "SchedulerPolicy", `{}`),
		client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("a policy by alice: %v", err)
	}
	if err := alice.Status().Update(t.Context(), object(t, "TrainingJob", `{}`)); !apierrors.IsForbidden(err) {
		t.Errorf("a status by alice: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// account is whom the controller acts as, once installed.
const account = "system:serviceaccount:trainyard:trainyard"

// spare are rights that no test uses, with the reason why they are there.
var spare = map[string]string{
	"update trainyard.dev trainingjobs/finalizers": "wanted by OwnerReferencesPermissionEnforcement, an admission " +
		"plugin that is not on by default",
	"patch  events": "what is reported again of an object is counted",
	"get  nodes": "one that is not in the cache of a new leader, or is deleted, " +
		"is asked for before its pods are given up",
	"patch resource.k8s.io resourceclaims": "claims of GPUs that jobs share get owners and lose them",
	"update resource.k8s.io resourceclaims": "dra-direct: a claim that was free for a moment has lost its " +
		"finalizer",
	"update resource.k8s.io resourceclaims/binding": "dra-direct: the API server asks for it when an allocation is " +
		"written, and does not note that",
}

// Ensure that the roles let the controller do all it does, and nothing else.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := rigOn(t, controlplane.Start(t, controlplane.Options{Audit: true}), 2,
		fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 100*time.Millisecond, 0)})
	r.bind("trainyard-direct", account)
	r.bind("trainyard-karpenter", account)
	r.user = account
	r.serve(func(o *controller.ServeOptions) { o.Elect, o.Lease = true, time.Minute })
	eventually(t, "there is a policy", func() bool {
		return r.api.Get(t.Context(), client.ObjectKey{Name: "default"}, &v1alpha1.SchedulerPolicy{}) == nil
	})
	if p := r.policy(); fmt.Sprint(p.Spec) != fmt.Sprint(controller.DefaultPolicy().Spec) {
		t.Errorf("the first policy: %+v", p.Spec)
	}
	r.runJobs()
	r.rent()
	r.setPolicy(`{mode: dra-direct, limits: {priorityClasses: [trainyard]}, ttlAfterFinished: 1s}`)
	r.create(r.job("direct", 1))
	r.until("direct", v1alpha1.Running)
	r.remove("direct")
	eventually(t, "the job that failed is deleted", func() bool {
		return apierrors.IsNotFound(r.api.Get(t.Context(), client.ObjectKey{Namespace: r.space, Name: "unreadable"},
			&v1alpha1.TrainingJob{}))
	})
	r.kill()
	r.compareRights(account, "trainyard", "trainyard-direct", "trainyard-karpenter")
}

// bind gives someone a role, and waits until the API server knows.
func (r *rig) bind(role, user string) {
	r.t.Helper()
	r.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}})
	var given rbacv1.ClusterRole
	must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Name: role}, &given))
	one := given.Rules[0]
	resource, sub, _ := strings.Cut(one.Resources[0], "/")
	eventually(r.t, user+" has "+role, func() bool {
		ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: one.APIGroups[0], Resource: resource,
				Subresource: sub, Verb: one.Verbs[0]}}}
		must(r.t, r.api.Create(r.t.Context(), ask))
		return ask.Status.Allowed
	})
}

// setPolicy changes the policy's spec.
func (r *rig) setPolicy(spec string) {
	r.t.Helper()
	body, err := yaml.YAMLToJSON([]byte(`{spec: ` + spec + `}`))
	must(r.t, err)
	p := &v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	must(r.t, r.api.Patch(r.t.Context(), p, client.RawPatch("application/merge-patch+json", body)))
}

// runJobs has jobs start, wait, be stopped and be refused, some under names that others took.
func (r *rig) runJobs() {
	space := metav1.ObjectMeta{Namespace: r.space}
	pod := &corev1.Pod{ObjectMeta: space, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}},
		NodeSelector: map[string]string{"no": "where"}}}
	pod.Name = "pod-1-0"
	service := &corev1.Service{ObjectMeta: space, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
	service.Name = "wide-1"
	claim := &resourcev1.ResourceClaim{ObjectMeta: space,
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "x", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com"}}}}}}
	claim.Name = "claim-1"
	for _, o := range []client.Object{pod, service, claim} {
		r.create(o)
	}
	unreadable := object(r.t, "TrainingJob",
		`{metadata: {namespace: lab, name: unreadable}, spec: {template: {spec: {containers: [{name: c, image: i, `+
			`resources: {limits: {cpu: "1e1.5"}}}]}}}}`)
	r.create(unreadable)
	for _, name := range []string{"pod", "claim"} {
		r.create(r.job(name, 1))
	}
	for _, name := range []string{"pod", "claim"} {
		if st := r.until(name, v1alpha1.Running); st.Attempt != 2 {
			r.t.Errorf("%s, of which the name of an object was taken: %+v", name, st)
		}
	}
	if st := r.until("unreadable", v1alpha1.Failed); !strings.Contains(st.Reason,
		"the spec cannot be read: quantities must match") {
		r.t.Errorf("unreadable: %+v", st)
	}
	r.suspend("pod", true)
	r.suspend("claim", true)
	r.create(r.job("wide", 4))
	own := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: r.space,
		Name: fmt.Sprint("wide-", r.until("wide", v1alpha1.Running).Attempt)}}
	must(r.t, r.api.Get(r.t.Context(), client.ObjectKeyFromObject(own), own))
	r.suspend("wide", true) // its service goes before it does
	eventually(r.t, "the service is gone", func() bool {
		return apierrors.IsNotFound(r.api.Get(r.t.Context(), client.ObjectKeyFromObject(own), own))
	})
	for _, o := range []client.Object{pod, service, claim} {
		if err := r.api.Get(r.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			r.t.Errorf("what belongs to someone else: %v", err)
		}
	}
	for _, name := range []string{"pod", "claim", "wide"} {
		r.remove(name)
	}
}

// rent has a pool looked at by the controller, and nodes rented and given back in its name.
func (r *rig) rent() {
	t := r.t
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "spot"},
		Spec: v1alpha1.GPUPoolSpec{GPUType: "A100", GPUsPerNode: 2,
			PricePerGPUHour: resource.MustParse("2"), Max: 4,
			Provider: v1alpha1.ProviderRef{Kind: "karpenter", Name: "gpus"}}}
	r.create(pool)
	for plural, kind := range map[string]string{"nodepools": "NodePool", "nodeclaims": "NodeClaim"} {
		r.create(karpenter(t, plural, kind))
	}
	nodePool := parsed(t, `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: gpus}, spec: {replicas: 0}}`)
	eventually(t, "there is a NodePool", func() bool { return r.api.Create(t.Context(), nodePool) == nil })
	claim := parsed(t, `{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: one}, spec: {replicas: 0}}`)
	eventually(t, "there is a NodeClaim", func() bool { return r.api.Create(t.Context(), claim) == nil })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rented",
		Labels: map[string]string{v1alpha1.LabelPool: "spot"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "one",
			UID: claim.GetUID()}}}}
	r.create(node)
	c := r.plane.Config()
	c.Impersonate.UserName = account
	api, err := client.New(c, client.Options{Scheme: r.api.Scheme()})
	must(t, err)
	p := provider.New(api, api, time.Now)
	must(t, p.Scale(t.Context(), pool, 2))
	must(t, p.Release(t.Context(), pool, node))
	if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); !apierrors.IsNotFound(err) {
		t.Errorf("the NodeClaim is there: %v", err)
	}
	must(t, client.IgnoreNotFound(r.api.Delete(t.Context(), node)))
	eventually(t, "the pool has a status", func() bool {
		return r.api.Get(t.Context(), client.ObjectKeyFromObject(pool), pool) == nil && pool.Status.Spend != ""
	})
	must(t, r.api.Delete(t.Context(), pool))
}

// karpenter returns a definition that is enough like one of Karpenter's.
func karpenter(t testing.TB, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	must(t, yaml.UnmarshalStrict(fmt.Appendf(nil, `{metadata: {name: %s.karpenter.sh}, spec: {group: karpenter.sh, scope: Cluster, names: {plural: %s, kind: %s},
		versions: [{name: v1, served: true, storage: true, subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.nodes}},
		schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}},
		status: {type: object, properties: {nodes: {type: integer}}}}}}}]}}`, plural, plural, kind), &crd))
	return &crd
}

func parsed(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// compareRights compares what a user asked for with what roles grant.
func (r *rig) compareRights(user string, roles ...string) {
	used := make(map[string]bool)
	for _, q := range r.plane.Requests(r.t) {
		if q.User != user || q.Resource == "" {
			continue
		}
		if q.Code == 403 {
			r.t.Errorf("refused: %+v", q)
		}
		used[q.Verb+" "+q.Group+" "+q.Resource] = true
		if q.Verb == "watch" { // of an API server that cannot stream a list, watchers ask for one first
			used["list "+q.Group+" "+q.Resource] = true
		}
	}
	var rules []rbacv1.PolicyRule
	for _, name := range roles {
		var role rbacv1.ClusterRole
		must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Name: name}, &role))
		rules = append(rules, role.Rules...)
	}
	var role rbacv1.Role
	if r.api.Get(r.t.Context(), client.ObjectKey{Namespace: "trainyard", Name: roles[0]}, &role) == nil {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		for _, of := range rule.Resources {
			for _, verb := range rule.Verbs {
				right := verb + " " + rule.APIGroups[0] + " " + of
				if _, known := spare[right]; known == used[right] {
					r.t.Errorf("%q is granted; it is used: %v, there is another reason: %v", right, used[right], known)
				}
			}
		}
	}
}

// Ensure that one who only looks on writes nothing, needs no more than it is granted, and reports each job where it
// would run, or why it would wait.
func TestObserve(t *testing.T) {
	t.Parallel()
	r := rigOn(t, controlplane.Start(t, controlplane.Options{Audit: true}), 2, fakenode.Options{GPUs: 2})
	const user = "platform-team"
	r.bind("trainyard-observe", user)
	r.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: "trainyard-observe"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "trainyard-observe"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}})
	r.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.SchedulerPolicySpec{Limits: v1alpha1.Limits{PriorityClasses: []string{"trainyard"}}}})
	r.create(r.job("one", 1))
	r.create(r.job("wide", 4))
	r.create(r.job("wider", 5))
	said := &said{}
	r.user = user
	r.serve(func(o *controller.ServeOptions) {
		o.Observe, o.Elect, o.Metrics = true, true, "127.0.0.1:0"
		o.Log = slog.New(slog.NewTextHandler(said, nil))
	})
	for _, want := range []string{
		`msg="would run" job=lab/one on=node-000/0`,
		`msg="would wait" job=lab/wide why="needs 4 GPUs, 3 are free`,
		`msg="would wait" job=lab/wider why="needs 5 GPUs, there are never more than 4`,
		`msg="in all" gpus="1 of 4" run=1 wait=2`,
	} {
		eventually(t, want, func() bool { return said.has(want) })
	}
	// they are taken behind what is said of a batch
	eventually(t, "trainyard_deciding is 1 where figures are asked for", func() bool {
		families, err := metrics.Registry.Gather()
		must(t, err)
		return slices.ContainsFunc(families, func(f *dto.MetricFamily) bool {
			return f.GetName() == "trainyard_deciding" && f.GetMetric()[0].GetGauge().GetValue() == 1
		})
	})
	must(t, r.api.Delete(t.Context(), r.job("one", 1)))
	eventually(t, "wide would run", func() bool {
		return said.has(`msg="would run" job=lab/wide on="node-000/0 node-000/1 node-001/0 node-001/1"`)
	})
	r.kill()
	for _, q := range r.plane.Requests(t) {
		if q.User == user && q.Writes() {
			t.Errorf("a write: %+v", q)
		}
	}
	r.compareRights(user, "trainyard-observe")
}

// said is a log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}
