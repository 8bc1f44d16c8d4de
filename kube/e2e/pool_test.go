package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// spot describes a pool of so many nodes at most.
func spot(product string, most int32) *v1alpha1.GPUPool {
	return &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "spot"},
		Spec: v1alpha1.GPUPoolSpec{GPUType: product, GPUsPerNode: 8,
			PricePerGPUHour: resource.MustParse("100000"), Max: most, Provider: v1alpha1.ProviderRef{Kind: "fake"}}}
}

// poolWorld is a cluster without nodes of its own, with a cloud.
func poolWorld(t *testing.T) *world {
	t.Helper()
	w := &world{ledger: newLedger()}
	w.rig = newRig(t, 0, fakenode.Options{GPUs: 8, Run: w.ledger.run}, v1alpha1.SchedulerPolicySpec{})
	ctx, cancel := context.WithCancel(context.Background())
	var cloud sync.WaitGroup
	cloud.Go(func() { w.cloud(ctx) })
	t.Cleanup(func() { cancel(); cloud.Wait() })
	return w
}

// pool returns the pool as it is, nil if there is none.
func (w *world) pool() *v1alpha1.GPUPool {
	p := new(v1alpha1.GPUPool)
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: "spot"}, p); apierrors.IsNotFound(err) {
		return nil
	}
	return p
}

// rentedNodes counts the nodes of the pool.
func (w *world) rentedNodes() int {
	var list corev1.NodeList
	w.stubborn(func() error { return w.api.List(w.t.Context(), &list, client.HasLabels{v1alpha1.LabelPool}) })
	return len(list.Items)
}

// Ensure that a pool that is deleted while a job runs on its node stays until that has ended and the node is given
// back, takes no more jobs meanwhile, and that one made again under its name starts with nothing spent.
func TestADeletedPoolGivesItsNodesBack(t *testing.T) {
	t.Parallel()
	w := poolWorld(t)
	w.create(spot("NVIDIA H100 80GB HBM3", 1))
	w.serve()
	w.submit("long", 1, 0)
	w.at("long", 1)
	eventually(t, "the pool has our finalizer, and spends", func() bool {
		p := w.pool()
		return len(p.Finalizers) == 1 && p.Status.Rented == 1
	})
	eventually(t, "the pool has spent something", func() bool { return w.pool().Status.Spend > "0.00" })
	must(t, w.api.Delete(t.Context(), w.pool()))
	eventually(t, "it says why it stays", func() bool {
		return strings.Contains(w.pool().Status.Message, "once its 1 nodes are given back")
	})
	// it is cordoned in addition to what it says
	eventually(t, "its node takes no more jobs", func() bool { return w.policy().Status.GPUs == "1 of 1" })
	w.submit("late", 1, 0)
	w.until("late", v1alpha1.Pending)
	if w.pool() == nil || w.rentedNodes() != 1 {
		t.Fatal("the pool, or its node, is gone under the job")
	}
	w.stubborn(func() error { return client.IgnoreNotFound(w.api.Delete(t.Context(), w.job("long", 1))) })
	eventually(t, "the node is given back, and the pool goes", func() bool {
		return w.pool() == nil && w.rentedNodes() == 0
	})
	if st := w.status("late"); st.Phase != v1alpha1.Pending {
		t.Errorf("late: %+v", st)
	}
	w.create(spot("NVIDIA H100 80GB HBM3", 0))
	eventually(t, "the new pool reports what it has spent", func() bool { return w.pool().Status.Spend != "" })
	if s := w.pool().Status.Spend; s != "0.00" {
		t.Errorf("the new pool has spent %s", s)
	}
}

// Ensure that a pool whose node has other GPUs than it says says so, gives it back and rents no more.
func TestAPoolOfAnotherType(t *testing.T) {
	t.Parallel()
	w := poolWorld(t)
	w.create(spot("NVIDIA A100", 1))
	w.serve()
	job := w.job("picky", 1)
	job.Spec.GPUTypes = []string{"NVIDIA A100"}
	w.create(job)
	const want = "wrong gpuType: node "
	eventually(t, "the pool says so", func() bool {
		m := w.pool().Status.Message
		return strings.HasPrefix(m, want) &&
			strings.HasSuffix(m, " has NVIDIA H100 80GB HBM3, the pool says NVIDIA A100; nothing is rented")
	})
	eventually(t, "the node is given back", func() bool { return w.rentedNodes() == 0 && w.pool().Status.Target == 0 })
	w.kill()
	w.serve()
	w.submit("after", 1, 0)
	w.until("after", v1alpha1.Pending)
	if m := w.pool().Status.Message; !strings.HasPrefix(m, want) || w.rentedNodes() != 0 {
		t.Errorf("the next leader: %q, %d nodes", m, w.rentedNodes())
	}
}
