package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that what is wrong with profiles, pools, the policy or a record is reported where one looks for it, harms no
// job that runs, and is over as soon as it is mended.
func TestBadInput(t *testing.T) {
	t.Parallel()
	r := rigOn(t, controlplane.Start(t, controlplane.Options{}), 1,
		fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 100*time.Millisecond, 0)})
	for _, o := range []client.Object{
		object(t, "GPUProfile", fmt.Sprintf(
			`{metadata: {name: node-000}, spec: {gpus: [{uuid: %s, scores: {A: "1.2"}}, {uuid: GPU-x}]}}`,
			fakenode.UUID("node-000", 0))),
		object(t, "GPUProfile", fmt.Sprintf(`{metadata: {name: other}, spec: {gpus: [{uuid: %s}]}}`,
			fakenode.UUID("node-000", 0))),
		object(t, "GPUPool", `{metadata: {name: a}, spec: {provider: {kind: karpenter, name: gpus}}}`),
		object(t, "GPUPool", `{metadata: {name: b}, spec: {provider: {kind: karpenter, name: gpus}}}`),
		r.job("one", 1), r.job("two", 1),
	} {
		r.create(o)
	}
	said := &said{}
	serve := func() {
		r.serve(func(o *controller.ServeOptions) { o.Log = slog.New(slog.NewTextHandler(said, nil)) })
	}
	serve()
	for _, want := range []string{
		"GPUProfile node-000 names GPU GPU-x, which the node does not have",
		"GPUProfile other names GPU GPU-node-000-0, of which GPUProfile node-000 says as well; the last of them " +
			"holds",
	} {
		eventually(t, want, func() bool { return said.has(want) })
	}
	eventually(t, "the pool that is one too many is reported", func() bool {
		var p v1alpha1.GPUPool
		must(t, r.api.Get(t.Context(), client.ObjectKey{Name: "b"}, &p))
		return p.Status.Message == "rents from karpenter gpus as pool a does; want one pool for each"
	})
	r.until("one", v1alpha1.Running)
	r.until("two", v1alpha1.Running)

	r.setPolicy(`{system: nosuch}`)
	r.untilMessage(`"nosuch"`)
	r.setPolicy(`{system: fifo, settings: {nosuch: "1"}}`)
	r.untilMessage(`nosuch`)
	eventually(t, "the log says that no one decides", func() bool { return said.has("no one decides") })
	r.setPolicy(`{system: null, settings: null}`)
	r.untilMessage("")
	r.kill()

	body := []byte(`{"status":{"record":"spoilt"}}`)
	must(t, r.api.Status().Patch(t.Context(), r.job("one", 1), client.RawPatch("application/merge-patch+json", body)))
	serve()
	eventually(t, "the job whose record is spoilt is left out", func() bool {
		return meta.IsStatusConditionTrue(r.status("one").Conditions, controller.IsUnreadable)
	})
	must(t, r.api.Delete(t.Context(), r.job("one", 1)))
	must(t, r.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(r.space),
		client.MatchingLabels{v1alpha1.LabelJob: "one"}))
	eventually(t, "the job is gone", func() bool {
		return apierrors.IsNotFound(r.api.Get(t.Context(), client.ObjectKey{Namespace: r.space, Name: "one"},
			&v1alpha1.TrainingJob{}))
	})
	r.create(r.job("three", 1)) // someone decides
	r.until("three", v1alpha1.Running)
	if st := r.status("two"); st.Phase != v1alpha1.Running || st.Attempt != 1 {
		t.Errorf("the other job: %+v", st)
	}
	r.remove("two")

	must(t, r.fleet.HideSlice(t.Context(), "node-000")) // as a DRA driver that is taken down does
	r.create(r.job("four", 1))
	eventually(t, "the next job waits", func() bool { return r.status("four").Reason != "" })
	if st := r.status("three"); st.Phase != v1alpha1.Running || st.Attempt != 1 ||
		r.status("four").Phase != v1alpha1.Pending {
		t.Errorf("while the slice is gone: %+v\n%+v", st, r.status("four"))
	}
	must(t, r.fleet.ShowSlice(t.Context(), "node-000"))
	r.until("four", v1alpha1.Running)
	r.remove("three")
	r.remove("four")
}

// untilMessage waits until the policy's message has words in it, or is none.
func (r *rig) untilMessage(want string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("the policy says %q", want), func() bool {
		is := r.policy().Status.Message
		return is == want || want != "" && strings.Contains(is, want)
	})
}

// clear takes away what the whole cluster has one of.
func (r *rig) clear() {
	r.kill()
	ctx := context.Background() // the test's is done
	r.letPoolsGo()
	err := errors.Join(
		r.api.DeleteAllOf(ctx, &v1alpha1.SchedulerPolicy{}), r.api.DeleteAllOf(ctx, &v1alpha1.GPUPool{}),
		r.api.DeleteAllOf(ctx, &v1alpha1.GPUProfile{}),
		r.api.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("trainyard")))
	if err != nil {
		r.t.Error(err)
	}
}

// letPoolsGo lets pools go that no controller is there to let go.
func (r *rig) letPoolsGo() {
	ctx := context.Background()
	var list v1alpha1.GPUPoolList
	if err := r.api.List(ctx, &list); err != nil {
		r.t.Error(err)
	}
	for i := range list.Items {
		body := []byte(`{"metadata": {"finalizers": null}}`)
		if err := client.IgnoreNotFound(r.api.Patch(ctx, &list.Items[i],
			client.RawPatch("application/merge-patch+json", body))); err != nil {
			r.t.Error(err)
		}
	}
}

// Ensure that nodes that do not name the product of their GPUs run jobs in the modes that go without slices.
func TestModesWithoutAProduct(t *testing.T) {
	r := rigOn(t, controlplane.Shared(t), 1,
		fakenode.Options{GPUs: 2, Plugin: true, Run: fakenode.Script(0, 100*time.Millisecond, 0)})
	t.Cleanup(r.clear)
	node := &corev1.Node{}
	must(t, r.api.Get(t.Context(), client.ObjectKey{Name: "node-000"}, node))
	body := fmt.Sprintf(`{"metadata": {"annotations": {%q: "%s, %s"}}}`, v1alpha1.AnnotationGPUs,
		fakenode.UUID("node-000", 0), fakenode.UUID("node-000", 1))
	must(t, r.api.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", []byte(body))))
	for _, mode := range []v1alpha1.Mode{v1alpha1.Count, v1alpha1.Visible} {
		r.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: controller.PolicyName},
			Spec: v1alpha1.SchedulerPolicySpec{System: "fifo", Mode: mode}})
		r.serve()
		name := "by-" + string(mode)
		r.create(r.job(name, 1))
		r.until(name, v1alpha1.Running)
		r.remove(name)
		r.clear()
	}
}
