package pools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Rent asks the provider for a number of nodes of a pool.
func (ps *Pools) Rent(ctx context.Context, pool sched.PoolID, count int32, a Around) {
	name := a.View.Pools[pool].Spec.Name
	if ps.o.Provider == nil {
		ps.o.Log.Warn("there is no provider to rent from", "pool", name)
		return
	}
	if count == 0 { // a deleted pool may wait for it before it may go
		ps.o.Look(observer.KeyOfPool(name))
	}
	spare := ps.spare(ctx, pool, count, a)
	ps.writers.Do("pool/"+name, func(ctx context.Context) {
		ps.insist(ctx, name, func(ctx context.Context, p *v1alpha1.GPUPool) error {
			if err := ps.giveBackAll(ctx, p, spare); err != nil {
				return err
			}
			return ps.o.Provider.Scale(ctx, p, count)
		})
	})
}

// spare returns the nodes of a pool beyond a number of nodes in all that are there and have not joined, since their
// GPUs are not seen: nothing else would give them back.
func (ps *Pools) spare(ctx context.Context, pool sched.PoolID, nodes int32, a Around) (names []string) {
	names, err := ps.unjoined(ctx, a.View.Pools[pool].Spec.Name, a, func(n *corev1.Node) bool {
		return n.Annotations[v1alpha1.AnnotationReleased] == ""
	})
	if err != nil { // of the cache
		return nil
	}
	for n := range a.View.Nodes {
		if node := &a.View.Nodes[n]; node.Spec.Pool == pool && node.Joined() && node.Target != sched.NodeGone {
			nodes--
		}
	}
	return names[min(len(names), int(max(nodes, 0))):]
}

// unjoined returns the nodes of a pool that are there and have not joined, and are so, by name.
func (ps *Pools) unjoined(ctx context.Context, pool string, a Around, so func(n *corev1.Node) bool) ([]string, error) {
	var list corev1.NodeList
	if err := ps.o.Client.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		if n := &list.Items[i]; !a.Joined(n.Name) && so(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// end gives back the nodes of a deleted pool that have not joined, calls off those that are not there yet, and lets the
// pool go. A node has not joined as long as its GPUs are not seen, which takes it minutes: later no one would know from
// which pool it is.
func (ps *Pools) end(ctx context.Context, p *v1alpha1.GPUPool, a Around) error {
	boot, err := ps.unjoined(ctx, p.Name, a, func(*corev1.Node) bool { return true })
	if err != nil {
		return err
	}
	ps.writers.Do("pool/"+p.Name, func(ctx context.Context) {
		ps.insist(ctx, p.Name, func(ctx context.Context, now *v1alpha1.GPUPool) error {
			if err := ps.giveBackAll(ctx, now, boot); err != nil {
				return err
			}
			err := ps.o.Provider.Scale(ctx, now, 0) // that of Rent may have been called off
			if missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err); err != nil && !missing {
				return err
			}
			return ps.setFinalizer(ctx, now, false)
		})
	})
	return nil
}

// setFinalizer sets or takes away our finalizer. If the pool has changed meanwhile, that has it looked at again.
func (ps *Pools) setFinalizer(ctx context.Context, p *v1alpha1.GPUPool, on bool) error {
	err := ps.o.Client.Patch(ctx, writer.WithFinalizer(p, on), writer.Locked(p))
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// giveBackAll gives back nodes that have not joined, and cordons them, so that they do not join meanwhile.
func (ps *Pools) giveBackAll(ctx context.Context, p *v1alpha1.GPUPool, names []string) error {
	for _, name := range names {
		node, err := ps.cordon(ctx, name, true)
		if err == nil {
			err = ps.o.Provider.Release(ctx, p, node)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// closeNode has a node take no more jobs.
func (ps *Pools) closeNode(name string) {
	ps.writers.Do("node/"+name, func(ctx context.Context) {
		err := ps.writers.Write(ctx, func(ctx context.Context) error {
			_, err := ps.cordon(ctx, name, true)
			return client.IgnoreNotFound(err)
		})
		ps.writers.Warn(ctx, err, "a node of a deleted pool cannot be cordoned", "node", name)
	})
}

// patient is how often something fails that may mend itself before people are informed, and lastRent the longest pause
// between tries.
const (
	patient  = 4
	lastRent = 30 * time.Second
)

// insist has something done with a provider until it is done or no longer wanted: what it refuses today, for want of a
// quota, a right or a definition, it may grant tomorrow. Meanwhile the pool says what is in the way.
func (ps *Pools) insist(ctx context.Context, pool string,
	call func(ctx context.Context, p *v1alpha1.GPUPool) error,
) {
	said := ""
	for try, pause := 1, writer.FirstPause; ; try, pause = try+1, min(2*pause, lastRent) {
		err := ps.writers.Once(ctx, func(ctx context.Context) error {
			var p v1alpha1.GPUPool
			if err := ps.o.Client.Get(ctx, types.NamespacedName{Name: pool}, &p); err != nil {
				return client.IgnoreNotFound(err)
			}
			return call(ctx, &p)
		})
		switch {
		case ctx.Err() != nil || errors.Is(err, context.Canceled):
			return
		case err == nil:
			ps.say(ctx, pool, "")
			return
		case (try >= patient || !writer.Transient(err)) && err.Error() != said:
			said = err.Error()
			ps.o.Log.Warn("nodes cannot be rented or given back; trying on", "pool", pool, "error", err)
			ps.say(ctx, pool, said)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// say has a pool say what is in the way of renting; "" takes that away.
func (ps *Pools) say(ctx context.Context, pool, text string) {
	ps.mu.Lock()
	was := ps.troubles[pool]
	same := was == text || text == "" && strings.HasPrefix(was, Mistyped)
	if same {
		ps.mu.Unlock()
		return
	}
	ps.troubles[pool] = text
	ps.mu.Unlock()
	p := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	if text != "" {
		about := p.DeepCopy()
		_ = ps.o.Client.Get(ctx, client.ObjectKeyFromObject(p), about) // for its UID, by which people find the Event
		ps.o.Event(about, "CannotRent", text)
	}
	err := ps.writers.Write(ctx, func(ctx context.Context) error {
		body, err := json.Marshal(map[string]any{"status": map[string]any{"message": text}})
		if err != nil {
			return writer.Fatal(err)
		}
		err = ps.o.Client.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, body))
		return client.IgnoreNotFound(err)
	})
	ps.writers.Warn(ctx, err, "what is in the way of renting cannot be written", "pool", pool)
}

// SetNode cordons a node, takes it into use again, or gives it back.
func (ps *Pools) SetNode(v *sched.View, a *sched.Action) {
	n := &v.Nodes[a.Node]
	name, pool, state := n.Spec.Name, v.PoolOf(n), a.State
	if state == sched.NodeAsleep || state == sched.NodeGone && (pool == nil || ps.o.Provider == nil) {
		ps.o.Log.Warn("nodes of a cluster do not sleep, and owned ones do not go", "node", name, "state", state)
		return
	}
	poolName := ""
	if pool != nil {
		poolName = pool.Spec.Name
	}
	ps.writers.Do("node/"+name, func(ctx context.Context) {
		var node *corev1.Node
		err := ps.writers.Write(ctx, func(ctx context.Context) (err error) {
			node, err = ps.cordon(ctx, name, state != sched.NodeUp)
			return err
		})
		switch {
		case client.IgnoreNotFound(err) != nil:
			ps.writers.Warn(ctx, err, "a node cannot be brought to a state", "node", name, "state", state)
		case err == nil && state == sched.NodeGone:
			ps.insist(ctx, poolName, func(ctx context.Context, p *v1alpha1.GPUPool) error {
				return ps.release(ctx, p, node)
			})
		}
	})
}

// release gives back a node, unless it has gone meanwhile.
func (ps *Pools) release(ctx context.Context, p *v1alpha1.GPUPool, node *corev1.Node) error {
	err := ps.o.Provider.Release(ctx, p, node)
	if err == nil {
		return nil
	}
	now := new(corev1.Node)
	found := ps.o.Reader.Get(ctx, client.ObjectKeyFromObject(node), now)
	if apierrors.IsNotFound(found) || found == nil && now.UID != node.UID {
		return nil
	}
	return err
}

// cordon keeps others off a node, or lets them on it again, and returns it.
func (ps *Pools) cordon(ctx context.Context, name string, on bool) (*corev1.Node, error) {
	node := new(corev1.Node)
	err := ps.o.Client.Get(ctx, types.NamespacedName{Name: name}, node)
	if err != nil || node.Spec.Unschedulable == on {
		return node, err
	}
	was := node.DeepCopy()
	node.Spec.Unschedulable = on
	return node, ps.o.Client.Patch(ctx, node, writer.Locked(was))
}
