package observer

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Key names an object that is to be looked at.
type Key struct {
	Kind Kind
	types.NamespacedName
}

// Kind says of what kind an object is.
type Kind uint8

// Kinds, in the order in which the keys of an instant are looked at: what later ones mean depends on earlier ones.
const (
	PoolKey  Kind = iota // GPUPool
	SliceKey             // ResourceSlice
	ClaimKey             // ResourceClaim
	NodeKey              // Node, or its GPUProfile
	PodKey               // Pod
	SpaceKey             // Namespace, or a ResourceQuota or LimitRange of it
	JobKey               // TrainingJob

	kinds = 7
)

// KeyOfNode returns the key of a node.
func KeyOfNode(name string) Key { return Key{NodeKey, types.NamespacedName{Name: name}} }

// KeyOfPool returns the key of a pool.
func KeyOfPool(name string) Key { return Key{PoolKey, types.NamespacedName{Name: name}} }

// KeyOfSpace returns the key of a namespace.
func KeyOfSpace(name string) Key { return Key{SpaceKey, types.NamespacedName{Name: name}} }

// KeyOfJob returns the key of a TrainingJob.
func KeyOfJob(job types.NamespacedName) Key { return Key{JobKey, job} }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name))
}

// Queue holds the keys of what changed, each once. NewQueue makes one: its zero value is not ready. Any goroutine may
// use it at any time.
type Queue struct {
	mu    sync.Mutex
	keys  map[Key]bool
	ready chan struct{} // has something
}

// NewQueue returns an empty Queue.
func NewQueue() *Queue {
	return &Queue{keys: make(map[Key]bool), ready: make(chan struct{}, 1)}
}

// Push has objects looked at.
func (q *Queue) Push(keys ...Key) {
	if len(keys) == 0 {
		return
	}
	q.mu.Lock()
	for _, k := range keys {
		q.keys[k] = true
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// Ready returns a channel that has something once keys were pushed.
func (q *Queue) Ready() <-chan struct{} { return q.ready }

// Take empties the queue and returns what was in it, in the order in which it is to be looked at.
func (q *Queue) Take() []Key {
	q.mu.Lock()
	defer q.mu.Unlock()
	keys := make([]Key, 0, len(q.keys))
	for k := range q.keys {
		keys = append(keys, k)
	}
	clear(q.keys)
	slices.SortFunc(keys, compareKeys)
	return keys
}
