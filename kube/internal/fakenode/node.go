package fakenode

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createLimit is how many nodes are created at once.
const createLimit = 16

// Add has nodes with these names join: Node, ResourceSlice, heartbeats. They get ready soon; see WaitReady.
func (f *Fleet) Add(ctx context.Context, names ...string) error { return each(ctx, f.add, names) }

// each does something about each of the names, several at a time.
func each(ctx context.Context, do func(context.Context, string) error, names []string) error {
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	limit := make(chan struct{}, createLimit)
	for _, name := range names {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			if err := do(ctx, name); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (f *Fleet) add(ctx context.Context, name string) error {
	return f.enter(ctx, name, func() error {
		_, err := f.client.CoreV1().Nodes().Create(ctx, f.nodeObject(name), metav1.CreateOptions{})
		return err
	})
}

// Adopt has nodes join whose objects are there already, as those of machines are which were asked for and have booted.
func (f *Fleet) Adopt(ctx context.Context, names ...string) error {
	err := each(ctx, func(ctx context.Context, name string) error {
		return f.enter(ctx, name, func() error { return f.patchStatus(ctx, name) })
	}, names)
	if f.options.Quiet {
		for _, o := range f.podStore.List() { // heard of before the nodes were there
			f.podSeen(o.(*corev1.Pod))
		}
	}
	return err
}

// enter has a node join, once its object is as it is to be.
func (f *Fleet) enter(ctx context.Context, name string, object func() error) error {
	n := &node{name: name, heard: make(chan struct{}), cut: make(chan struct{})}
	close(n.heard)
	n.ctx, n.cancel = context.WithCancel(f.ctx)
	f.mu.Lock()
	f.nodes[name] = n
	f.mu.Unlock()
	if err := object(); err != nil {
		return err
	}
	if err := f.publish(ctx, name); err != nil {
		return err
	}
	if !f.options.Quiet {
		f.wait.Go(func() { f.heartbeat(n) })
	}
	return nil
}

// Remove takes a node away, as a cloud does with a machine: its processes die, its Node and ResourceSlice go.
func (f *Fleet) Remove(ctx context.Context, name string) error {
	f.Lose(name)
	f.mu.Lock()
	delete(f.nodes, name)
	f.mu.Unlock()
	err := f.client.ResourceV1().ResourceSlices().Delete(ctx, sliceName(name), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return f.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}

// WaitReady waits until all nodes of the fleet are ready and without taints.
func (f *Fleet) WaitReady(t testing.TB) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f.ready() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("fakenode: nodes did not get ready")
		}
	}
}

func (f *Fleet) ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.nodes {
		o, ok, err := f.nodeStore.GetByKey(name)
		if !ok || err != nil {
			return false
		}
		if n := o.(*corev1.Node); !isReady(n) || len(n.Spec.Taints) > 0 {
			return false
		}
	}
	return true
}

// nodeSeen reports to the control plane again that a node is ready, where it thinks otherwise and the node can hear
// that.
func (f *Fleet) nodeSeen(object *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[object.Name]
	if n == nil || n.silent || n.lost || isReady(object) {
		return
	}
	ctx := n.ctx
	f.wait.Go(func() {
		f.insist(ctx, n, func(ctx context.Context) error { return f.patchReady(ctx, n.name) })
	})
}

// heartbeat renews the node's lease, the second time after a random part of the interval, so that nodes do not speak
// all at once.
func (f *Fleet) heartbeat(n *node) {
	var lease *coordinationv1.Lease
	timer := time.NewTimer(rand.N(f.options.Heartbeat))
	defer timer.Stop()
	for {
		f.mu.Lock()
		ctx, removed := n.ctx, f.nodes[n.name] != n
		f.mu.Unlock()
		if removed {
			return
		}
		f.insist(ctx, n, func(ctx context.Context) (err error) {
			lease, err = f.renew(ctx, n.name, lease)
			return err
		})
		select {
		case <-timer.C:
			timer.Reset(f.options.Heartbeat)
		case <-f.ctx.Done():
			return
		}
	}
}

// insist tries until it succeeds, as a kubelet does: later where the node is silent or the API server is down. It gives
// up when ctx is done, which is the node's or a pod's, or when the object is gone or another has its name.
func (f *Fleet) insist(ctx context.Context, n *node, try func(context.Context) error) {
	for pause := 50 * time.Millisecond; f.audible(ctx, n); pause = min(2*pause, time.Second) {
		err := try(ctx)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// audible waits until the node is not silent, or ctx is done: then it says no.
func (f *Fleet) audible(ctx context.Context, n *node) bool {
	f.mu.Lock()
	heard := n.heard
	f.mu.Unlock()
	select {
	case <-heard:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
