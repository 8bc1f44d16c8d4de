package e2e

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/provider"
	"github.com/trainyard/trainyard/system"
)

// Ensure that every system runs jobs of all kinds to their ends on a cluster, and that the engine alone, given what happened, decides
// all of it the same again.
func TestSystems(t *testing.T) {
	w := newWorld(t, controlplane.Options{}, 2, v1alpha1.SchedulerPolicySpec{})
	for _, info := range system.Table() {
		t.Run(info.Name, func(t *testing.T) { w.of(t).under(info) })
	}
}

// of returns the world for a part of its test, with nothing in it but nodes.
func (w *world) of(t *testing.T) *world {
	part := &world{ledger: newLedger(), rig: &rig{t: t, plane: w.plane, api: w.api, fleet: w.fleet, space: w.space}}
	w.ledger.mu.Lock()
	w.ledger.next = part.ledger
	w.ledger.mu.Unlock()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log ends with\n%s", part.log.Bytes()[max(0, part.log.Len()-8<<10):])
		}
	})
	t.Cleanup(part.kill)
	return part
}

// under runs a mixed workload under a system, and replays it.
func (w *world) under(info system.Info) {
	policy := v1alpha1.SchedulerPolicySpec{System: info.Name}
	switch keys := info.KeyNames(); { // rounds of their own take minutes
	case slices.Contains(keys, "interval"):
		policy.Settings = map[string]string{"interval": "1"}
	case info.Batches || info.Rents || slices.Contains(keys, "order"):
		policy.Round.Duration = time.Second
	}
	w.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: policy})
	w.stubborn(func() error { // the policy that newRig made, or that of the system before
		p := w.policy()
		p.Spec = policy
		return w.api.Update(w.t.Context(), p)
	})
	if info.Rents {
		defer w.rentable()()
	}
	w.serve()
	w.mixed()
	w.settle()
	w.stubborn(func() error {
		return w.api.DeleteAllOf(w.t.Context(), &v1alpha1.TrainingJob{}, client.InNamespace(w.space))
	})
	eventually(w.t, "no job is left", func() bool {
		var list v1alpha1.TrainingJobList
		return w.api.List(w.t.Context(), &list) == nil && len(list.Items) == 0
	})
	w.kill()
	w.forget()
	replay(w.t, w.log.Bytes())
}

// mixed submits jobs of fixed and of any width, of one GPU and of several nodes, such as share and such as do not, with a deadline
// and without.
func (w *world) mixed() {
	widths := []v1alpha1.Width{{Min: 1}, {Min: 2}, {Min: 4}, {Min: 12}, {Min: 1, Max: new(int32(8))}, {Min: 1, Max: new(int32(4)), Want: new(int32(2))}, {Min: 1}, {Min: 3}}
	for i, width := range widths {
		j := w.job(fmt.Sprint("job-", i), 1)
		j.Spec.GPUs = width
		j.Spec.Profile = v1alpha1.Profile{Model: []string{"resnet50", "bert"}[i%2], Class: "A", Epochs: 10}
		j.Spec.Sharing = v1alpha1.Sharing{Allowed: i%2 == 0, MemoryGiB: 10}
		j.Spec.Deadline = &metav1.Time{Time: time.Now().Add(time.Hour)}
		if width.Max != nil {
			j.Spec.Batch = &v1alpha1.Batch{Min: 64, Max: 512, PerGPUMax: 128}
		}
		j.Spec.Template.Annotations = map[string]string{runsFor: fmt.Sprint(time.Duration(1+i%3) * 500 * time.Millisecond)}
		w.stubborn(func() error { return w.api.Create(w.t.Context(), j) })
		w.jobs = append(w.jobs, j.Name)
	}
}

// forget takes away what a controller left, so that the next begins at the beginning.
func (w *world) forget() {
	w.t.Helper()
	objects := []client.Object{&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
	for _, name := range []string{controller.ClusterMap, controller.MemoryMap} {
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: name}})
	}
	for _, o := range objects {
		if err := client.IgnoreNotFound(w.api.Delete(w.t.Context(), o)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// replay has a new system of the same kind decide what a log tells, and fails the test where it decides otherwise.
func replay(t testing.TB, log []byte) {
	t.Helper()
	if n := bytes.Count(log, []byte(engine.LogSchema)); n != 1 {
		t.Fatalf("%d logs in one: the controller began anew meanwhile", n)
	}
	r, err := engine.NewLogReader(bytes.NewReader(log), "log")
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	sys, err := system.Live(&h, system.Knowledge{})
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := engine.Recover(t.Context(), h, r.Records(), sys.Decider, engine.ReplayOptions{})
	if err != nil {
		t.Fatalf("the replay: %v", err)
	}
	if lines := bytes.Count(log, []byte("\n")) - 1; state.View().Version != uint64(lines) || lines == 0 {
		t.Errorf("%d events replayed of %d", state.View().Version, lines)
	}
}

// rentable makes a pool of nodes that boot for a second, and plays the cloud that has them come. The function it returns ends that.
func (w *world) rentable() (end func()) {
	w.t.Helper()
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: v1alpha1.GPUPoolSpec{GPUType: "NVIDIA H100 80GB HBM3", GPUsPerNode: 8,
		PricePerGPUHour: resource.MustParse("2"), Max: 4, BudgetGPUs: resource.MustParse("16"), Boot: metav1.Duration{Duration: time.Second},
		Provider: v1alpha1.ProviderRef{Kind: "fake"}}}
	w.create(pool)
	ctx, cancel := context.WithCancel(context.Background())
	var cloud sync.WaitGroup
	cloud.Go(func() { w.cloud(ctx) })
	return func() {
		w.kill()
		cancel()
		cloud.Wait()
		if err := w.api.Delete(context.Background(), pool); err != nil {
			w.t.Error(err)
		}
	}
}

// cloud has rented nodes boot and go, until ctx ends; then all go.
func (w *world) cloud(ctx context.Context) {
	up := make(map[string]bool)
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		var list corev1.NodeList
		if w.api.List(ctx, &list, client.HasLabels{v1alpha1.LabelPool}) != nil {
			continue
		}
		there := make(map[string]bool)
		for i := range list.Items {
			n := &list.Items[i]
			at, err := time.Parse(time.RFC3339Nano, n.Annotations[provider.BootsAt])
			if there[n.Name] = true; err == nil && !up[n.Name] && time.Now().After(at) && w.fleet.Adopt(ctx, n.Name) == nil {
				up[n.Name] = true
			}
		}
		for name := range up {
			if !there[name] {
				w.leave(name)
				delete(up, name)
			}
		}
	}
	for name := range up {
		w.leave(name)
	}
}

// leave takes a rented node away, its object as well if it is there.
func (w *world) leave(name string) {
	if err := w.fleet.Remove(context.Background(), name); err != nil && !apierrors.IsNotFound(err) {
		w.t.Error(err)
	}
}
