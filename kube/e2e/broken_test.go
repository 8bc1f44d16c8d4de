package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that a node on which nothing starts does not keep jobs from the healthy ones: the second attempt goes
// elsewhere.
func TestABrokenNodeKeepsNobody(t *testing.T) {
	t.Parallel()
	// a healthy node starts one in less
	policy := v1alpha1.SchedulerPolicySpec{StartTimeout: metav1.Duration{Duration: 15 * time.Second}}
	r := newRig(t, 3, fakenode.Options{GPUs: 8}, policy)
	r.fleet.FailStarts("node-000", "RunContainerError")
	r.serve()
	for i := range 3 {
		r.create(r.job(fmt.Sprint("small-", i), 1))
	}
	for i := range 3 {
		if st := r.until(fmt.Sprint("small-", i), v1alpha1.Running); st.Attempt > 2 {
			t.Errorf("small-%d runs in attempt %d: %s", i, st.Attempt, st.Reason)
		}
	}
}

// Ensure that a type of GPU that no one has any more does not keep a system from deciding that wants one type, and that
// jobs say meanwhile that no one decides.
func TestATypeIsForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 8}, v1alpha1.SchedulerPolicySpec{})
	pool := func(name, product string) *v1alpha1.GPUPool {
		return &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.GPUPoolSpec{GPUType: product, GPUsPerNode: 8, Max: 1,
				PricePerGPUHour: resource.MustParse("2"), BudgetGPUs: resource.MustParse("6"),
				Provider: v1alpha1.ProviderRef{Kind: "fake"}}}
	}
	r.create(pool("old", "NVIDIA A100"))
	r.serve()
	r.create(r.job("first", 1))
	r.until("first", v1alpha1.Running)
	r.policyIs("boa")
	eventually(t, "no one decides over two types", func() bool { return r.policy().Status.Message != "" })
	message := r.policy().Status.Message
	r.create(r.job("second", 1))
	if st := r.until("second", v1alpha1.Pending); st.Reason != message ||
		!strings.HasPrefix(message, "no one decides: ") {
		t.Errorf("reason %q", st.Reason)
	}
	if err := r.api.Delete(t.Context(), pool("old", "NVIDIA A100")); err != nil {
		t.Fatal(err)
	}
	r.create(pool("new", "NVIDIA H100 80GB HBM3"))
	r.until("second", v1alpha1.Running)
}

// policyIs has another system decide.
func (r *rig) policyIs(system string) {
	r.t.Helper()
	eventually(r.t, "the policy is changed", func() bool {
		p := r.policy()
		p.Spec.System = system
		return r.api.Update(r.t.Context(), p) == nil
	})
}
