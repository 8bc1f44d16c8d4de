package fakenode

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Silence cuts a node off: no heartbeats, no reports, and it hears nothing. Its processes go on; what they do is
// reported after Heal.
func (f *Fleet) Silence(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[name]; n != nil && !n.silent {
		n.silent = true
		n.heard = make(chan struct{})
	}
}

// Lose ends a node without a word: its processes die, and no one reports it. Its objects stay.
func (f *Fleet) Lose(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil || n.lost {
		return
	}
	n.lost = true
	n.cancel()
	for uid, p := range f.pods {
		if p.node == n {
			delete(f.pods, uid)
		}
	}
}

// Heal brings a silent or a lost node back. A silent one hears what it missed and reports. A lost one has booted: pods
// that it ran are reported as failed, and those that it had not started are.
func (f *Fleet) Heal(name string) {
	f.mu.Lock()
	n := f.nodes[name]
	if n == nil || !n.silent && !n.lost {
		f.mu.Unlock()
		return
	}
	if n.silent {
		n.silent = false
		close(n.heard)
	}
	if n.lost {
		n.lost = false
		n.ctx, n.cancel = context.WithCancel(f.ctx)
	}
	f.mu.Unlock()
	f.resync(n)
}

// resync has a node hear what is so now.
func (f *Fleet) resync(n *node) {
	there := map[types.UID]bool{}
	for _, p := range f.podsOf(n) {
		there[p.UID] = true
		f.podSeen(p)
	}
	f.mu.Lock()
	var missed []*corev1.Pod
	for uid, p := range f.pods {
		if p.node == n && !there[uid] {
			missed = append(missed, p.first)
		}
	}
	f.mu.Unlock()
	for _, p := range missed {
		f.podGone(p)
	}
	if o, ok, err := f.nodeStore.GetByKey(n.name); ok && err == nil {
		f.nodeSeen(o.(*corev1.Node))
	}
}

// podsOf returns the pods of a node, as a kubelet that boots asks for them: the watch may not have reported yet that
// one runs. While no one answers they are those that it named.
func (f *Fleet) podsOf(n *node) (pods []*corev1.Pod) {
	list, err := f.client.CoreV1().Pods(metav1.NamespaceAll).List(f.ctx,
		metav1.ListOptions{FieldSelector: "spec.nodeName=" + n.name})
	if err == nil {
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
		return pods
	}
	for _, o := range f.podStore.List() {
		if p := o.(*corev1.Pod); p.Spec.NodeName == n.name {
			pods = append(pods, p)
		}
	}
	return pods
}

// FailStarts has no container of the node created, for this reason, until it is called with "". Processes that run go
// on.
func (f *Fleet) FailStarts(name, reason string) {
	f.change(name, func(n *node) { n.fails = reason })
}

// SlowStarts adds to the start delay of a node.
func (f *Fleet) SlowStarts(name string, by time.Duration) {
	f.change(name, func(n *node) { n.slow = by })
}

// HideSlice has the node's ResourceSlice vanish, as it does when the DRA driver is taken down. Processes that run go
// on, and pods with claims do not start.
func (f *Fleet) HideSlice(ctx context.Context, name string) error {
	f.change(name, func(n *node) { n.hidden = true })
	return f.client.ResourceV1().ResourceSlices().Delete(ctx, sliceName(name), metav1.DeleteOptions{})
}

// ShowSlice publishes the node's ResourceSlice again.
func (f *Fleet) ShowSlice(ctx context.Context, name string) error {
	if err := f.publish(ctx, name); err != nil {
		return err
	}
	f.change(name, func(n *node) { n.hidden = false })
	return nil
}

// change changes a node and has its pods look again.
func (f *Fleet) change(name string, how func(*node)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[name]; n != nil {
		how(n)
		f.nudgeAll(n)
	}
}
