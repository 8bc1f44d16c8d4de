package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/testsize"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

var sieges = testsize.Flag("sieges", 1, 50, "random worlds of tenants whose jobs are refused, of 40 moves each")

// siegeWorld is honest jobs next to tenants, of whose jobs none may start: the first has a quota that refuses them at
// all times, another has rules of Pod Security, the third a webhook, which refuses them or is away. They have the
// highest priority.
type siegeWorld struct {
	*siege
	leader *controlplane.Program
	draw   *rand.Rand
	hook   *webhook
	honest []string
	count  int
}

// Namespaces of the other tenants.
const (
	strict = "strict"
	hooked = "hooked"
)

// moves are what may happen next in a world.
var moves = map[string]func(w *siegeWorld){
	"honest job": func(w *siegeWorld) {
		if len(w.honest) < 12 {
			name := w.name("honest")
			w.create(w.job(name, 1+w.draw.Int32N(4)))
			w.honest = append(w.honest, name)
		}
	},
	"job that is refused":   func(w *siegeWorld) { w.create(w.refused(tenant)) },
	"job against the rules": func(w *siegeWorld) { w.create(w.refused(strict)) },
	"webhook that is away":  func(w *siegeWorld) { w.hook.answer.Store(away) },
	"webhook that refuses":  func(w *siegeWorld) { w.hook.answer.Store(refuses) },
	"job of a webhook":      func(w *siegeWorld) { w.create(w.refused(hooked)) },
	"job of no pod": func(w *siegeWorld) {
		j := w.refused(tenant)
		j.Spec.Template.Spec.Containers[0].Image = ""
		w.create(j)
	},
	"job that goes": func(w *siegeWorld) {
		j := w.refused(tenant)
		w.create(j)
		must(w.t, client.IgnoreNotFound(w.api.Delete(w.t.Context(), j)))
	},
	"other refusal": func(w *siegeWorld) {
		o := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: w.name("quota")},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
		var old corev1.ResourceQuotaList
		must(w.t, w.api.List(w.t.Context(), &old, client.InNamespace(tenant)))
		w.create(o) // first, so that at no time none refuses
		eventually(w.t, "the quota counts", func() bool {
			return w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), o) == nil && len(o.Status.Hard) > 0
		})
		for i := range old.Items {
			must(w.t, w.api.Delete(w.t.Context(), &old.Items[i]))
		}
	},
	"range of limits": func(w *siegeWorld) {
		w.create(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}}}}})
	},
	"namespace that goes": func(w *siegeWorld) {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name("doomed")}}
		w.create(n)
		w.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: n.Name, Name: "none"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}})
		w.create(w.refused(n.Name))
		must(w.t, w.api.Delete(w.t.Context(), n))
	},
	"finalizer of others": func(w *siegeWorld) {
		var pods corev1.PodList
		must(w.t, w.api.List(w.t.Context(), &pods, client.InNamespace(w.space)))
		if len(pods.Items) == 0 {
			return
		}
		p := &pods.Items[w.draw.IntN(len(pods.Items))]
		// it may have gone meanwhile, or is going, when no finalizer can be added
		_ = w.api.Patch(w.t.Context(), p, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata": {"finalizers": ["example.com/keep"]}}`)))
	},
	"kill": func(w *siegeWorld) {
		w.leader.Kill()
		w.leader = w.launch()
	},
}

// name returns a name that nothing had.
func (w *siegeWorld) name(begins string) string {
	w.count++
	return fmt.Sprintf("%s-%d", begins, w.count)
}

// refused returns a job of the tenant, on as many GPUs as there are.
func (w *siegeWorld) refused(space string) *v1alpha1.TrainingJob {
	return w.job(w.name("refused"), 8, func(j *v1alpha1.TrainingJob) {
		j.Namespace, j.Spec.Priority = space, 5
		j.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse("1Gi")}
	})
}

// Ensure that in random worlds of tenants whose jobs are refused in ever other ways, with finalizers of others on pods,
// namespaces that go, and a controller that is killed whatever it is at, no GPU has two owners by what its node sees,
// all honest jobs end in their first attempt, none of the others runs, and nothing is left once their jobs are deleted.
func TestWorldsOfTenants(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, fakenode.Options{GPUs: 4, Run: fakenode.Script(time.Second, 50*time.Millisecond, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo-skip", Settings: map[string]string{"min_run": "0"},
			Limits: v1alpha1.Limits{Priority: 5}})
	for _, name := range []string{tenant, hooked} {
		r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: strict,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}})
	w := &siegeWorld{siege: &siege{rig: r}}
	w.hook = w.webhook(hooked)
	defer w.hook.server.Close()
	moves["other refusal"](w)
	w.leader = r.launch()
	for seed := range uint64(sieges.N()) {
		w.play(seed)
	}
}

// play plays a world to its end.
func (w *siegeWorld) play(seed uint64) {
	w.draw, w.honest = rand.New(rand.NewPCG(seed, 2)), nil
	names := []string{"honest job", "honest job", "honest job", "job that is refused", "job against the rules",
		"job of a webhook", "webhook that is away", "webhook that refuses", "job of no pod", "job that goes",
		"other refusal", "range of limits", "namespace that goes", "finalizer of others", "finalizer of others", "kill"}
	for range 40 {
		what := names[w.draw.IntN(len(names))]
		w.t.Log(what)
		moves[what](w)
		time.Sleep(time.Duration(w.draw.IntN(300)) * time.Millisecond)
	}
	for _, name := range w.honest {
		if st := w.until(name, v1alpha1.Succeeded); st.Attempt != 1 || st.Restarts != 0 {
			w.t.Errorf("seed %d: %s: %+v, want its first attempt to end", seed, name, st)
		}
	}
	var jobs v1alpha1.TrainingJobList
	must(w.t, w.api.List(w.t.Context(), &jobs))
	for i := range jobs.Items {
		// while the webhook is away a start on free GPUs may be tried
		j, st := &jobs.Items[i], &jobs.Items[i].Status
		if j.Namespace != w.space && (st.Phase == v1alpha1.Running || st.Phase == v1alpha1.Succeeded ||
			j.Namespace != hooked && st.Attempt != 0) {
			w.t.Errorf("seed %d: %s: %+v, want it never started", seed, j.Name, st)
		}
		must(w.t, client.IgnoreNotFound(w.api.Delete(w.t.Context(), j)))
	}
	var pods corev1.PodList
	must(w.t, w.api.List(w.t.Context(), &pods))
	for i := range pods.Items {
		must(w.t, client.IgnoreNotFound(w.api.Patch(w.t.Context(), &pods.Items[i],
			client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))))
	}
	eventually(w.t, "nothing is left over", func() bool {
		var claims resourcev1.ResourceClaimList
		var left v1alpha1.TrainingJobList
		for _, list := range []client.ObjectList{&pods, &claims, &left} {
			must(w.t, w.api.List(w.t.Context(), list))
		}
		return len(pods.Items)+len(claims.Items)+len(left.Items) == 0
	})
}
