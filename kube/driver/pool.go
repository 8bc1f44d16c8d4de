package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// Provider makes the nodes of a pool come and go. Its calls are tried again when they fail, and must be idempotent.
type Provider interface {
	// Scale asks for a number of nodes in all. It never chooses who goes: fewer than there are calls off those that are not there yet.
	Scale(ctx context.Context, pool *v1alpha1.GPUPool, nodes int32) error
	// Release gives back exactly this node, on which nothing of ours runs any more.
	Release(ctx context.Context, pool *v1alpha1.GPUPool, node *corev1.Node) error
}

// PoolSpec returns what the core knows of a GPUPool, whose GPUs are of the type of this number. It may be one that cannot be.
func PoolSpec(p *v1alpha1.GPUPool, t sched.TypeID) sched.PoolSpec {
	return sched.PoolSpec{Name: p.Name, Type: t, GPUs: int(p.Spec.GPUsPerNode), Min: p.Spec.Min, Max: p.Spec.Max,
		Price: sched.Dollars(p.Spec.PricePerGPUHour.AsApproximateFloat64() * float64(p.Spec.GPUsPerNode)),
		Boot:  p.Spec.Boot.Duration, Billing: p.Spec.Billing.Duration, FromJoin: true}
}

// poolSpec returns what the core knows of a GPUPool that can be.
func (d *Driver) poolSpec(p *v1alpha1.GPUPool) (*sched.PoolSpec, error) {
	t, err := d.o.Types(p.Spec.GPUType)
	if err != nil {
		return nil, err
	}
	s := PoolSpec(p, t)
	return &s, s.Validate()
}

// lookAtPool tells what may be rented of a pool. Of one that is deleted nothing may, nor of one whose nodes have other GPUs than it says.
func (d *Driver) lookAtPool(name string) error {
	var p v1alpha1.GPUPool
	found, err := d.get(types.NamespacedName{Name: name}, &p)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(d.view.Pools, func(p sched.Pool) bool { return p.Spec.Name == name })
	var spec *sched.PoolSpec
	switch {
	case found && p.DeletionTimestamp == nil:
		d.keepPool(&p, true)
		if spec, err = d.poolSpec(&p); err != nil {
			d.o.Event(&p, "Invalid", err.Error())
			return nil
		}
		if d.isMistyped(&p) {
			spec.Min, spec.Max = 0, 0
		}
	case found:
		if err := d.closePool(&p, i); err != nil || i < 0 {
			return err
		}
		spec = d.noMoreOf(i)
	case i < 0:
		return nil
	default:
		spec = d.noMoreOf(i)
	}
	if i < 0 {
		i = len(d.view.Pools) + len(d.newPools)
		d.newPools = append(d.newPools, name)
	} else if d.view.Pools[i].Spec == *spec {
		return nil
	}
	d.tell(sched.Event{Kind: sched.PoolChanged, Pool: sched.PoolID(i), PoolSpec: spec})
	if spec.Name == "" { // once that is durable, it may go
		d.again(observer.KeyOfPool(name))
	}
	return nil
}

// noMoreOf returns what the core knows of a deleted pool from now on: nothing may be rented, and once nothing is left of it, it has no name,
// for another of its name is another pool and has spent nothing.
func (d *Driver) noMoreOf(i int) *sched.PoolSpec {
	p := &d.view.Pools[i]
	none := p.Spec
	none.Min, none.Max = 0, 0
	if p.Nodes == 0 && p.Ordered == 0 {
		none.Name = ""
	}
	return &none
}

// keepPool has a pool that is deleted stay until its nodes are given back, by our finalizer, or lets it go.
func (d *Driver) keepPool(p *v1alpha1.GPUPool, on bool) {
	if controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) == on {
		return
	}
	d.submit("finalizer/pool/"+p.Name, func(ctx context.Context) {
		err := d.crew.write(ctx, func(ctx context.Context) error { return d.setPoolFinalizer(ctx, p, on) })
		d.warn(ctx, err, "the finalizer of a pool cannot be set", "pool", p.Name, "on", on)
	})
}

// setPoolFinalizer sets or takes away our finalizer. Who has changed the pool meanwhile has it looked at again.
func (d *Driver) setPoolFinalizer(ctx context.Context, p *v1alpha1.GPUPool, on bool) error {
	then := p.DeepCopy()
	if on {
		controllerutil.AddFinalizer(then, v1alpha1.Finalizer)
	} else {
		controllerutil.RemoveFinalizer(then, v1alpha1.Finalizer)
	}
	err := d.o.Client.Patch(ctx, then, locked(p))
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// closePool has the nodes of a deleted pool take no more jobs, and lets the pool go once nothing of it is left, see noMoreOf. i is its
// number, below 0 if it has none.
func (d *Driver) closePool(p *v1alpha1.GPUPool, i int) error {
	nodes := 0
	for n := range d.view.Nodes {
		node := &d.view.Nodes[n]
		if i < 0 || node.Spec.Pool != sched.PoolID(i) || !node.Joined() {
			continue
		}
		nodes++
		if node.State == sched.NodeUp && node.Ordered != sched.NodeGone && !d.inventory.IsCordoned(node.Spec.Name) {
			d.closeNode(node.Spec.Name) // but for one that is being given back, which this would call off
		}
	}
	switch {
	case nodes > 0:
		text := fmt.Sprintf("is deleted, and goes once its %d nodes are given back: they take no more jobs", nodes)
		d.submit("pool-says/"+p.Name, func(ctx context.Context) { d.saysOf(ctx, p.Name, text) })
	case i >= 0: // it is told to be none, or to have no name, and looked at again then
	case d.o.Provider == nil || !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer):
		d.keepPool(p, false)
	default:
		return d.endPool(p)
	}
	return nil
}

// endPool gives back the nodes of a deleted pool that have not joined, calls off those that are not there yet, and lets the pool go. A node
// has not joined as long as its GPUs are not seen, which takes it minutes: later nobody would know from whom it is.
func (d *Driver) endPool(p *v1alpha1.GPUPool) error {
	boot, err := d.unjoined(p.Name, func(*corev1.Node) bool { return true })
	if err != nil {
		return err
	}
	d.submit("pool/"+p.Name, func(ctx context.Context) {
		d.insist(ctx, p.Name, func(ctx context.Context, now *v1alpha1.GPUPool) error {
			if err := d.giveBackAll(ctx, now, boot); err != nil {
				return err
			}
			err := d.o.Provider.Scale(ctx, now, 0) // that of rent may have been called off
			if missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err); err != nil && !missing {
				return err
			}
			return d.setPoolFinalizer(ctx, now, false)
		})
	})
	return nil
}

// giveBackAll gives back nodes that have not joined, and has them not join meanwhile.
func (d *Driver) giveBackAll(ctx context.Context, p *v1alpha1.GPUPool, names []string) error {
	for _, name := range names {
		node, err := d.cordon(ctx, name, true)
		if err == nil {
			err = d.o.Provider.Release(ctx, p, node)
		}
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// closeNode has a node take no more jobs.
func (d *Driver) closeNode(name string) {
	d.submit("node/"+name, func(ctx context.Context) {
		err := d.crew.write(ctx, func(ctx context.Context) error {
			_, err := d.cordon(ctx, name, true)
			return client.IgnoreNotFound(err)
		})
		d.warn(ctx, err, "a node of a deleted pool cannot be cordoned", "node", name)
	})
}

// Mistyped begins what a pool says whose nodes have other GPUs than it says. It cannot be mended but by another pool, so what the status
// says holds for as long as the pool is there.
const Mistyped = "wrong gpuType: "

// isMistyped reports whether it is known that a pool's nodes have other GPUs than it says.
func (d *Driver) isMistyped(p *v1alpha1.GPUPool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.HasPrefix(p.Status.Message, Mistyped) || strings.HasPrefix(d.troubles[p.Name], Mistyped)
}

// mindType has the pool of a node that has joined say so, and rent no more, if that has GPUs of another type than the pool says.
func (d *Driver) mindType(n *sched.Node) {
	pool := d.view.PoolOf(n)
	if pool == nil || pool.Spec.Type == n.Spec.Type || int(max(pool.Spec.Type, n.Spec.Type)) >= len(d.view.Types) {
		return
	}
	name := pool.Spec.Name
	text := fmt.Sprintf("%snode %s has %s, the pool says %s; nothing is rented", Mistyped, n.Spec.Name, d.view.Types[n.Spec.Type], d.view.Types[pool.Spec.Type])
	d.mu.Lock()
	known := strings.HasPrefix(d.troubles[name], Mistyped)
	d.mu.Unlock()
	if known {
		return
	}
	d.submit("pool-says/"+name, func(ctx context.Context) {
		d.saysOf(ctx, name, text)
		d.o.Queue.Push(observer.KeyOfPool(name))
	})
}

// poolOf returns the pool that a node is rented from, by its label.
func (d *Driver) poolOf(node *corev1.Node) sched.PoolID {
	name := node.Labels[v1alpha1.LabelPool]
	if name == "" {
		return sched.None
	}
	if i := slices.IndexFunc(d.view.Pools, func(p sched.Pool) bool { return p.Spec.Name == name }); i >= 0 {
		return sched.PoolID(i)
	}
	d.o.Log.Warn("there is no pool of that name: the node is taken for one of our own", "node", node.Name, "pool", name)
	return sched.None
}

// rent asks the provider for a number of nodes.
func (d *Driver) rent(a *sched.Action) {
	name := d.view.Pools[a.Pool].Spec.Name
	if d.o.Provider == nil {
		d.o.Log.Warn("there is nobody to rent from", "pool", name)
		return
	}
	count := a.Count
	if count == 0 { // it may be waited for before a deleted pool may go
		d.o.Queue.Push(observer.KeyOfPool(name))
	}
	spare := d.spare(a.Pool, count)
	d.submit("pool/"+name, func(ctx context.Context) {
		d.insist(ctx, name, func(ctx context.Context, p *v1alpha1.GPUPool) error {
			if err := d.giveBackAll(ctx, p, spare); err != nil {
				return err
			}
			return d.o.Provider.Scale(ctx, p, count)
		})
	})
}

// spare returns the nodes of a pool beyond a number of nodes in all that are there and have not joined, since their GPUs are not seen: nobody
// else would give them back.
func (d *Driver) spare(pool sched.PoolID, nodes int32) (names []string) {
	names, err := d.unjoined(d.view.Pools[pool].Spec.Name, func(n *corev1.Node) bool { return n.Annotations[v1alpha1.AnnotationReleased] == "" })
	if err != nil { // of the cache
		return nil
	}
	for n := range d.view.Nodes {
		if node := &d.view.Nodes[n]; node.Spec.Pool == pool && node.Joined() && node.Target != sched.NodeGone {
			nodes--
		}
	}
	return names[min(len(names), int(max(nodes, 0))):]
}

// unjoined returns the nodes of a pool that are there and have not joined, and are so, by name.
func (d *Driver) unjoined(pool string, so func(n *corev1.Node) bool) (names []string, err error) {
	var list corev1.NodeList
	if err := d.o.Client.List(d.ctx, &list, client.MatchingLabels{v1alpha1.LabelPool: pool}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if _, joined := d.inventory.NodeID(d.view, list.Items[i].Name); !joined && so(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// patient is how often something fails that may mend itself before anybody is told, and lastRent the longest pause between tries.
const (
	patient  = 4
	lastRent = 30 * time.Second
)

// insist has something done with a provider until it is done or no longer wanted: what is refused today, for want of a quota, a right or a
// definition, may be granted tomorrow. Meanwhile the pool says what is in the way.
func (d *Driver) insist(ctx context.Context, pool string, call func(ctx context.Context, p *v1alpha1.GPUPool) error) {
	said := ""
	for try, pause := 1, firstPause; ; try, pause = try+1, min(2*pause, lastRent) {
		err := d.crew.once(ctx, func(ctx context.Context) error {
			var p v1alpha1.GPUPool
			if err := d.o.Client.Get(ctx, types.NamespacedName{Name: pool}, &p); err != nil {
				return client.IgnoreNotFound(err)
			}
			return call(ctx, &p)
		})
		switch {
		case ctx.Err() != nil || errors.Is(err, context.Canceled):
			return
		case err == nil:
			d.saysOf(ctx, pool, "")
			return
		case (try >= patient || !transient(err)) && err.Error() != said:
			said = err.Error()
			d.o.Log.Warn("nodes cannot be rented or given back; trying on", "pool", pool, "error", err)
			d.saysOf(ctx, pool, said)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// saysOf has a pool say what is in the way of renting; "" takes that away.
func (d *Driver) saysOf(ctx context.Context, pool, text string) {
	d.mu.Lock()
	same := d.troubles[pool] == text || text == "" && strings.HasPrefix(d.troubles[pool], Mistyped)
	if same {
		d.mu.Unlock()
		return
	}
	d.troubles[pool] = text
	d.mu.Unlock()
	p := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: pool}}
	if text != "" {
		about := p.DeepCopy()
		_ = d.o.Client.Get(ctx, client.ObjectKeyFromObject(p), about) // for its UID, by which one finds what is told of it
		d.o.Event(about, "CannotRent", text)
	}
	err := d.crew.write(ctx, func(ctx context.Context) error {
		body, err := json.Marshal(map[string]any{"status": map[string]any{"message": text}})
		if err != nil {
			return fatal(err)
		}
		return client.IgnoreNotFound(d.o.Client.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, body)))
	})
	d.warn(ctx, err, "what is in the way of renting cannot be told", "pool", pool)
}

// setNode cordons a node, takes it into use again, or gives it back.
func (d *Driver) setNode(a *sched.Action) {
	n := &d.view.Nodes[a.Node]
	name, pool, state := n.Spec.Name, d.view.PoolOf(n), a.State
	if state == sched.NodeAsleep || state == sched.NodeGone && (pool == nil || d.o.Provider == nil) {
		d.o.Log.Warn("nodes of a cluster do not sleep, and owned ones do not go", "node", name, "state", state)
		return
	}
	poolName := ""
	if pool != nil {
		poolName = pool.Spec.Name
	}
	d.submit("node/"+name, func(ctx context.Context) {
		var node *corev1.Node
		err := d.crew.write(ctx, func(ctx context.Context) (err error) {
			node, err = d.cordon(ctx, name, state != sched.NodeUp)
			return err
		})
		switch {
		case client.IgnoreNotFound(err) != nil:
			d.warn(ctx, err, "a node cannot be brought to a state", "node", name, "state", state)
		case err == nil && state == sched.NodeGone:
			d.insist(ctx, poolName, func(ctx context.Context, p *v1alpha1.GPUPool) error { return d.release(ctx, p, node) })
		}
	})
}

// release gives back a node, unless it has gone meanwhile.
func (d *Driver) release(ctx context.Context, p *v1alpha1.GPUPool, node *corev1.Node) error {
	err := d.o.Provider.Release(ctx, p, node)
	if err == nil {
		return nil
	}
	now := new(corev1.Node)
	found := d.o.Reader.Get(ctx, client.ObjectKeyFromObject(node), now)
	if apierrors.IsNotFound(found) || found == nil && now.UID != node.UID {
		return nil
	}
	return err
}

// cordon keeps others off a node, or lets them on it again, and returns it.
func (d *Driver) cordon(ctx context.Context, name string, on bool) (*corev1.Node, error) {
	node := new(corev1.Node)
	if err := d.o.Client.Get(ctx, types.NamespacedName{Name: name}, node); err != nil || node.Spec.Unschedulable == on {
		return node, err
	}
	was := node.DeepCopy()
	node.Spec.Unschedulable = on
	return node, d.o.Client.Patch(ctx, node, locked(was))
}
