package pools

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/driver/writer"
	"github.com/trainyard/trainyard/sched"
)

// Provider makes the nodes of a pool come and go. Its calls are tried again when they fail, and must be idempotent.
type Provider interface {
	// Scale asks for a number of nodes in all. It never chooses which go: fewer than there are calls off those that are
	// not there yet.
	Scale(ctx context.Context, pool *v1alpha1.GPUPool, nodes int32) error
	// Release gives back exactly this node, on which nothing of ours runs any more.
	Release(ctx context.Context, pool *v1alpha1.GPUPool, node *corev1.Node) error
}

// Options say what Pools work with.
type Options struct {
	Client   client.Client                                  // reads from a cache, writes to the API server
	Reader   client.Reader                                  // reads from the API server itself
	Types    func(product string) (sched.TypeID, error)     // the number of a product; the error says why it has none
	Provider Provider                                       // nil: nothing can be rented
	Event    func(about client.Object, reason, text string) // reports to people; any goroutine calls it
	Look     func(observer.Key)                             // has an object looked at; any goroutine calls it
	Log      *slog.Logger
}

// Pools are the pools of a cluster. Their exported methods belong to one goroutine and wait for no write.
type Pools struct {
	o       Options
	writers *writer.Writers
	added   []string // of the look under way: pools that the engine has yet to number

	mu       sync.Mutex
	troubles map[string]string // with renting, by pool, as written
}

// New returns pools that these writers write.
func New(o Options, w *writer.Writers) *Pools {
	return &Pools{o: o, writers: w, troubles: make(map[string]string)}
}

// Spec returns what the core knows of a GPUPool, whose GPUs are of the type of this number. It may be one that cannot
// be.
func Spec(p *v1alpha1.GPUPool, t sched.TypeID) sched.PoolSpec {
	price := p.Spec.PricePerGPUHour.AsApproximateFloat64() * float64(p.Spec.GPUsPerNode)
	return sched.PoolSpec{
		Name: p.Name, Type: t, GPUs: int(p.Spec.GPUsPerNode), Min: p.Spec.Min, Max: p.Spec.Max,
		Price: sched.Dollars(price), Boot: p.Spec.Boot.Duration, Billing: p.Spec.Billing.Duration, FromJoin: true,
	}
}

// spec returns what the core knows of a GPUPool that can be.
func (ps *Pools) spec(p *v1alpha1.GPUPool) (*sched.PoolSpec, error) {
	t, err := ps.o.Types(p.Spec.GPUType)
	if err != nil {
		return nil, err
	}
	s := Spec(p, t)
	return &s, s.Validate()
}

// Around is what a step of the pools needs to know of the nodes.
type Around struct {
	View     *sched.View
	Joined   func(node string) bool // the View has the node
	Cordoned func(node string) bool
}

// StartLook is called before the looks of an instant.
func (ps *Pools) StartLook() { ps.added = nil }

// Added returns the pools that were reported in the look under way, and that the engine has yet to number.
func (ps *Pools) Added() []string { return ps.added }

// numberOf returns the number of the pool of a name, below 0 if it has none.
func numberOf(v *sched.View, name string) int {
	return slices.IndexFunc(v.Pools, func(p sched.Pool) bool { return p.Spec.Name == name })
}

// Look reports what may be rented of a pool. Of one that is deleted nothing may, nor of one whose nodes have other GPUs
// than it says.
func (ps *Pools) Look(ctx context.Context, api observer.API, name string, a Around) (f observer.Found, err error) {
	var p v1alpha1.GPUPool
	found, err := api.Get(ctx, types.NamespacedName{Name: name}, &p)
	if err != nil {
		return f, err
	}
	i := numberOf(a.View, name)
	var spec *sched.PoolSpec
	switch {
	case found && p.DeletionTimestamp == nil:
		if spec = ps.offer(&p); spec == nil {
			return f, nil
		}
	case found:
		if err := ps.close(ctx, &p, i, a); err != nil || i < 0 {
			return f, err
		}
		spec = noMoreOf(&a.View.Pools[i])
	case i < 0:
		return f, nil
	default:
		spec = noMoreOf(&a.View.Pools[i])
	}
	if i < 0 {
		i = len(a.View.Pools) + len(ps.added)
		ps.added = append(ps.added, name)
	} else if a.View.Pools[i].Spec == *spec {
		return f, nil
	}
	f.Report(sched.Event{Kind: sched.PoolChanged, Pool: sched.PoolID(i), PoolSpec: spec})
	if spec.Name == "" { // once that is durable, it may go
		f.LookAgain(observer.KeyOfPool(name))
	}
	return f, nil
}

// offer returns what may be rented of a pool that is there; nil: it cannot be.
func (ps *Pools) offer(p *v1alpha1.GPUPool) *sched.PoolSpec {
	ps.keep(p, true)
	spec, err := ps.spec(p)
	if err != nil {
		ps.o.Event(p, "Invalid", err.Error())
		return nil
	}
	if ps.isMistyped(p) {
		spec.Min, spec.Max = 0, 0
	}
	return spec
}

// noMoreOf returns what the core knows of a deleted pool from now on: nothing may be rented, and once nothing is left
// of it, it has no name, for another of its name is another pool and has spent nothing.
func noMoreOf(p *sched.Pool) *sched.PoolSpec {
	none := p.Spec
	none.Min, none.Max = 0, 0
	if p.Nodes == 0 && p.Ordered == 0 {
		none.Name = ""
	}
	return &none
}

// keep has a pool that is deleted stay until its nodes are given back, by our finalizer, or lets it go.
func (ps *Pools) keep(p *v1alpha1.GPUPool, on bool) {
	if controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer) == on {
		return
	}
	ps.writers.Do("finalizer/pool/"+p.Name, func(ctx context.Context) {
		err := ps.writers.Write(ctx, func(ctx context.Context) error { return ps.setFinalizer(ctx, p, on) })
		ps.writers.Warn(ctx, err, "the finalizer of a pool cannot be set", "pool", p.Name, "on", on)
	})
}

// close has the nodes of a deleted pool take no more jobs, and lets the pool go once nothing of it is left, see
// noMoreOf. i is its number, below 0 if it has none.
func (ps *Pools) close(ctx context.Context, p *v1alpha1.GPUPool, i int, a Around) error {
	nodes := 0
	for n := range a.View.Nodes {
		node := &a.View.Nodes[n]
		if i < 0 || node.Spec.Pool != sched.PoolID(i) || !node.Joined() {
			continue
		}
		nodes++
		if node.State == sched.NodeUp && node.Ordered != sched.NodeGone && !a.Cordoned(node.Spec.Name) {
			ps.closeNode(node.Spec.Name) // but for one that is being given back, which this would call off
		}
	}
	switch {
	case nodes > 0:
		text := fmt.Sprintf("is deleted, and goes once its %d nodes are given back: they take no more jobs", nodes)
		ps.writers.Do("pool-says/"+p.Name, func(ctx context.Context) { ps.say(ctx, p.Name, text) })
	case i >= 0: // it is reported to be none, or to have no name, and looked at again then
	case ps.o.Provider == nil || !controllerutil.ContainsFinalizer(p, v1alpha1.Finalizer):
		ps.keep(p, false)
	default:
		return ps.end(ctx, p, a)
	}
	return nil
}

// Mistyped is what the message of a pool starts with whose nodes have other GPUs than it says. Only another pool mends
// that, so what the status says holds for as long as the pool is there.
const Mistyped = "wrong gpuType: "

// isMistyped reports whether it is known that a pool's nodes have other GPUs than it says.
func (ps *Pools) isMistyped(p *v1alpha1.GPUPool) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return strings.HasPrefix(p.Status.Message, Mistyped) || strings.HasPrefix(ps.troubles[p.Name], Mistyped)
}

// CheckType has the pool of a node that has joined say so, and rent no more, if the node has GPUs of another type than
// the pool says.
func (ps *Pools) CheckType(v *sched.View, n *sched.Node) {
	pool := v.PoolOf(n)
	if pool == nil || pool.Spec.Type == n.Spec.Type || int(max(pool.Spec.Type, n.Spec.Type)) >= len(v.Types) {
		return
	}
	name := pool.Spec.Name
	text := fmt.Sprintf("%snode %s has %s, the pool says %s; nothing is rented",
		Mistyped, n.Spec.Name, v.Types[n.Spec.Type], v.Types[pool.Spec.Type])
	ps.mu.Lock()
	known := strings.HasPrefix(ps.troubles[name], Mistyped)
	ps.mu.Unlock()
	if known {
		return
	}
	ps.writers.Do("pool-says/"+name, func(ctx context.Context) {
		ps.say(ctx, name, text)
		ps.o.Look(observer.KeyOfPool(name))
	})
}

// Of returns the pool that a node is rented from, by its label.
func (ps *Pools) Of(v *sched.View, node *corev1.Node) sched.PoolID {
	name := node.Labels[v1alpha1.LabelPool]
	if name == "" {
		return sched.None
	}
	if i := numberOf(v, name); i >= 0 {
		return sched.PoolID(i)
	}
	ps.o.Log.Warn("there is no pool of that name: the node is taken for one of our own", "node", node.Name, "pool",
		name)
	return sched.None
}

// NodeLeft is called when a node without attempts is reported to have left, and returns what is to be looked at: if its
// pool is deleted, that may have been what the pool waits for. It asks for the number of nodes again if the node was
// given back: with it one fewer was asked for, whether or not another is wanted in its place.
func (ps *Pools) NodeLeft(ctx context.Context, n *sched.Node, a Around) (f observer.Found) {
	p := a.View.PoolOf(n)
	if p == nil {
		return f
	}
	f.LookAgain(observer.KeyOfPool(p.Spec.Name))
	if n.Target == sched.NodeGone && ps.o.Provider != nil {
		ps.Rent(ctx, n.Spec.Pool, p.Ordered, a)
	}
	return f
}
