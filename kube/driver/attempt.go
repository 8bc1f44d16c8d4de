package driver

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/sched"
)

// attempt is an attempt that is alive, as far as the View says. It belongs to the goroutine of the engine, but for what news has.
type attempt struct {
	id     sched.JobID
	number int32
	key    types.NamespacedName // of its TrainingJob
	uid    types.UID
	base   string // its name, which those of its objects begin with
	mode   v1alpha1.Mode
	config sched.Config
	ranks  []rank

	firstGPU int // of the first rank, counted on its node

	adopted bool // those who led before ordered it
	begun   bool // the crew was told to begin it
	waits   bool // for its devices: its pods are to be made
	delay   delay
	due     time.Time     // when it is too late to start; zero = it was not told to
	stop    sched.Outcome // why it is stopped; NoOutcome = it is not
	fate    *fate         // how it ends, nil = it does not
	leaving bool          // we told its pods to end, or those who led before did
	orphan  bool          // its job is deleted: so may its pods be, by the garbage collector, before we are told to stop it
	removed bool          // the crew was told to see to that
	forced  map[int]bool  // ranks whose pods were given up
	meter   *meter        // reads what it tells
	unhear  context.CancelFunc
	quiet   time.Time   // since when it is over, but for words that may be on their way; zero = it is not
	cleaned atomic.Bool // nothing is left of it in the API server

	news
}

// news is what the crew found out.
type news struct {
	mu      sync.Mutex
	claimed time.Time     // when the claims were there; zero = not yet
	free    chan struct{} // closed once the pods may be made
	made    time.Time     // when the pods were there; zero = not yet
	refused error         // the API server will have none of it
	none    map[int]bool  // ranks that the API server has no pod of
	met     map[int]bool  // ranks whose pod was in the cache: if it is not there any more, it is gone
}

// rank is the part of an attempt that is on one node.
type rank struct {
	node     sched.NodeID
	nodeName string
	gpus     []sched.GPUID
	devices  []*inventory.Device // that gpus are; nil in modes that do not name them
	seen     bool                // its pod was in the cache
	adopted  bool                // its pod was there, as those who led before know
	ended    *sight              // how it ended by itself, as it was seen first
}

// newAttempt returns attempt number of a job, on its GPUs.
func (d *Driver) newAttempt(id sched.JobID, number int32, gpus []sched.GPUID, c sched.Config) *attempt {
	spec := d.view.Jobs[id].Spec
	a := &attempt{id: id, number: number, key: types.NamespacedName{Namespace: spec.User, Name: spec.Name}, uid: types.UID(spec.Task),
		base: baseOf(spec.Name, number), mode: d.o.Mode, config: c, forced: make(map[int]bool),
		news: news{free: make(chan struct{}), none: make(map[int]bool), met: make(map[int]bool)}}
	for _, g := range gpus { // in order, so that those of a node are side by side
		node := d.view.GPUs[g].Node
		if n := len(a.ranks); n == 0 || a.ranks[n-1].node != node {
			a.ranks = append(a.ranks, rank{node: node, nodeName: d.view.Nodes[node].Spec.Name})
		}
		r := &a.ranks[len(a.ranks)-1]
		r.gpus = append(r.gpus, g)
	}
	a.firstGPU = int(a.ranks[0].gpus[0] - d.view.Nodes[a.ranks[0].node].First)
	return a
}

// baseOf is what the names of the objects of an attempt of a job begin with.
func baseOf(job string, number int32) string { return job + "-" + strconv.Itoa(int(number)) }

// findDevices has the GPUs of an attempt be devices that the cluster shows. The error names one that is not there.
func (d *Driver) findDevices(a *attempt) (err error) {
	if a.mode == v1alpha1.Count {
		return nil
	}
	for i := range a.ranks {
		r := &a.ranks[i]
		devices, missing := d.inventory.Devices(&d.view.Nodes[r.node], r.gpus)
		r.devices = devices
		if missing != nil {
			err = missing
		}
	}
	return err
}

// podName returns the name of the pod of rank r.
func (a *attempt) podName(r int) string { return a.base + "-" + strconv.Itoa(r) }

// width returns how many GPUs the attempt has.
func (a *attempt) width() int {
	n := 0
	for i := range a.ranks {
		n += len(a.ranks[i].gpus)
	}
	return n
}

// lineName is that of the crew's tasks for the attempt.
func (a *attempt) lineName() string { return "job/" + a.key.String() }

// see returns what the cache shows of the ranks.
func (d *Driver) see(a *attempt) (ranks []sight, pods []*corev1.Pod, err error) {
	ranks, pods = make([]sight, len(a.ranks)), make([]*corev1.Pod, len(a.ranks))
	for i := range a.ranks {
		r := &a.ranks[i]
		r.seen = r.seen || a.hasMet(i)
		p := new(corev1.Pod)
		key := types.NamespacedName{Namespace: a.key.Namespace, Name: a.podName(i)}
		found, err := d.get(key, p)
		r.seen = r.seen || found && observer.IsOf(p, a.uid)
		if r.adopted && !r.seen && err == nil && !a.hasNone(i) && !(found && observer.IsOf(p, a.uid)) {
			p = new(corev1.Pod)
			if found, err = d.ask(key, p); err == nil && !(found && observer.IsOf(p, a.uid)) {
				a.note(i, true, false)
			}
		}
		if err != nil {
			return nil, nil, err
		}
		switch {
		case found && observer.IsOf(p, a.uid):
			pods[i] = p
			ranks[i] = look(p, a.leaving, d.inventory.IsGone(r.nodeName))
			if s := ranks[i]; r.ended == nil && (s.stage == succeeded || s.stage == failed) {
				r.ended = &s
			}
		case r.seen || a.hasNone(i):
			ranks[i] = sight{stage: leaving, over: true}
			if !a.leaving {
				ranks[i] = sight{stage: lost, over: true, text: deletedByOthers + a.podName(i)}
			}
		default:
			ranks[i].text = fmt.Sprintf("pod %s is not there yet", a.podName(i))
		}
		if r.ended != nil && (ranks[i].stage == leaving || ranks[i].stage == lost) { // whatever became of its object
			over := ranks[i].over
			ranks[i] = *r.ended
			ranks[i].over = over
		}
	}
	return ranks, pods, nil
}

// hasNone reports whether the API server said that there is no pod of rank r.
func (n *news) hasNone(r int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.none[r]
}

// hasMet reports whether the pod of rank r was in the cache when it was deleted.
func (n *news) hasMet(r int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met[r]
}

// note notes that the API server has no pod of rank r, or that it was in the cache.
func (n *news) note(r int, none, met bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.none[r], n.met[r] = n.none[r] || none, n.met[r] || met
}

func intQuantity(n int) *resource.Quantity { return resource.NewQuantity(int64(n), resource.DecimalSI) }
