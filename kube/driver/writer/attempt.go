package writer

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/devices"
	"github.com/trainyard/trainyard/kube/driver/inventory"
	"github.com/trainyard/trainyard/sched"
)

// Attempt is an attempt of a job as it is written: what its objects are, and what the writers found out about them.
type Attempt struct {
	Job    sched.JobID
	Number int32
	Key    types.NamespacedName // of its TrainingJob
	UID    types.UID
	Config sched.Config
	Ranks  []Rank
	News

	mode     v1alpha1.Mode
	base     string      // its name, which those of its objects start with
	firstGPU int         // of the first rank, counted on its node
	podsToo  bool        // its pods are to be deleted when it is cleaned up
	cleaned  atomic.Bool // nothing is left of it in the API server
}

// Rank is the part of an attempt that is on one node.
type Rank struct {
	Node     sched.NodeID
	NodeName string
	GPUs     []sched.GPUID
	Devices  []*devices.Device // that GPUs are; nil in modes that do not name them
}

// NewAttempt returns attempt number of a job, on its GPUs.
func NewAttempt(v *sched.View, mode v1alpha1.Mode, job sched.JobID, number int32, gpus []sched.GPUID,
	c sched.Config,
) *Attempt {
	spec := v.Jobs[job].Spec
	a := &Attempt{
		Job: job, Number: number, Key: types.NamespacedName{Namespace: spec.User, Name: spec.Name},
		UID: types.UID(spec.Task), base: baseOf(spec.Name, number), mode: mode, Config: c, News: newNews(),
	}
	for _, g := range gpus { // in order, so that those of a node follow each other
		node := v.GPUs[g].Node
		if n := len(a.Ranks); n == 0 || a.Ranks[n-1].Node != node {
			a.Ranks = append(a.Ranks, Rank{Node: node, NodeName: v.Nodes[node].Spec.Name})
		}
		r := &a.Ranks[len(a.Ranks)-1]
		r.GPUs = append(r.GPUs, g)
	}
	a.firstGPU = int(a.Ranks[0].GPUs[0] - v.Nodes[a.Ranks[0].Node].First)
	return a
}

// baseOf is what the names of the objects of an attempt of a job start with.
func baseOf(job string, number int32) string { return job + "-" + strconv.Itoa(int(number)) }

// FindDevices has the GPUs of the attempt be devices that the cluster shows. The error names one that is not there.
func (a *Attempt) FindDevices(in *inventory.Inventory, v *sched.View) (err error) {
	if a.mode == v1alpha1.Count {
		return nil
	}
	for i := range a.Ranks {
		r := &a.Ranks[i]
		devices, missing := in.Devices(&v.Nodes[r.Node], r.GPUs)
		r.Devices = devices
		if missing != nil {
			err = missing
		}
	}
	return err
}

// ForgetDevices has the devices be found again.
func (a *Attempt) ForgetDevices() {
	for i := range a.Ranks {
		a.Ranks[i].Devices = nil
	}
}

// RankOf returns the rank whose pod has a name; ok is false if none has.
func (a *Attempt) RankOf(pod string) (r int, ok bool) {
	r, err := strconv.Atoi(strings.TrimPrefix(pod, a.base+"-"))
	if err != nil || r < 0 || r >= len(a.Ranks) || a.PodName(r) != pod {
		return 0, false
	}
	return r, true
}

// PodName returns the name of the pod of rank r.
func (a *Attempt) PodName(r int) string { return a.base + "-" + strconv.Itoa(r) }

// Within returns the key of an object of the attempt.
func (a *Attempt) Within(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: a.Key.Namespace, Name: name}
}

// Width returns how many GPUs the attempt has.
func (a *Attempt) Width() int {
	n := 0
	for i := range a.Ranks {
		n += len(a.Ranks[i].GPUs)
	}
	return n
}

// line is that of the writers' tasks for the attempt.
func (a *Attempt) line() string { return "job/" + a.Key.String() }

// News is what writers found out about an attempt. Any goroutine may use its methods.
type News struct {
	mu      sync.Mutex
	claimed time.Time     // when the claims were there; zero: not yet
	free    chan struct{} // closed once the pods may be made
	made    time.Time     // when the pods were there; zero: not yet
	refused error         // why the API server does not take something of it
	none    map[int]bool  // ranks that the API server has no pod of
	met     map[int]bool  // ranks whose pod was in the cache: if it is not there any more, it is gone
}

func newNews() News {
	return News{free: make(chan struct{}), none: make(map[int]bool), met: make(map[int]bool)}
}

// Progress is how far the objects of an attempt are.
type Progress struct {
	Claimed time.Time // when the claims were there; zero: not yet
	Made    time.Time // when the pods were there; zero: not yet
	Refused error     // why the API server does not take something of it; nil: it took all so far
	Free    bool      // the pods may be made
}

// Progress returns how far the objects of the attempt are.
func (n *News) Progress() Progress {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := Progress{Claimed: n.claimed, Made: n.made, Refused: n.refused}
	select {
	case <-n.free:
		p.Free = true
	default:
	}
	return p
}

// MakePods has the pods made, as its devices are free. It is called once.
func (n *News) MakePods() { close(n.free) }

// HasNone reports whether the API server said that there is no pod of rank r.
func (n *News) HasNone(r int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.none[r]
}

// HasMet reports whether the pod of rank r was in the cache when it was deleted.
func (n *News) HasMet(r int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met[r]
}

// Note notes that the API server has no pod of rank r, or that the pod was in the cache.
func (n *News) Note(r int, none, met bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.none[r], n.met[r] = n.none[r] || none, n.met[r] || met
}

// set changes the news.
func (n *News) set(change func(n *News)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}
