package fakenode

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Options of a fleet; zero values mean what is said.
type Options struct {
	GPUs      int    // per node
	Product   string // model of the GPUs; "": "NVIDIA H100 80GB HBM3"
	MemoryGiB int64  // per GPU; 0: 80

	// Consumable lets several claims have a GPU at once, each with a part of its memory (allowMultipleAllocations).
	Consumable bool

	// Plugin has nodes offer their GPUs by number too, as nvidia.com/gpu, as the device plugin does.
	Plugin bool

	// EnvSharers is how many pods may name a GPU in NVIDIA_VISIBLE_DEVICES at once; 0 means 1.
	EnvSharers int

	// Heartbeat is the time between two signs of life of a node; 0 means a kubelet's default, 10 s.
	Heartbeat time.Duration

	// Quiet nodes give no sign of life: thousands of leases would be most of what a control plane does. It must bear
	// that, see controlplane.Options.NodeGrace. What runs on one that is adopted goes on, as if it had been there.
	Quiet bool

	// StartDelay is the time from a pod's claims being ready to its process running.
	StartDelay time.Duration

	// Run is what a pod's process does; it returns the exit code. nil means Script(0, 0, 0): on until asked to stop.
	Run func(*Process) int

	// Tolerate has violations noted, but does not fail the test for them: for tests that bring them about.
	Tolerate bool
}

// Fleet is a number of nodes. Its methods may be called from any goroutine.
type Fleet struct {
	options Options
	client  kubernetes.Interface
	id      string // value of fleetLabel
	ctx     context.Context
	wait    sync.WaitGroup

	podStore, claimStore, nodeStore cache.Store

	mu         sync.Mutex
	nodes      map[string]*node
	pods       map[types.UID]*pod // known to a node
	books      books
	violations []string
	running    int   // processes
	addresses  int   // given to pods
	logs       int32 // the port that has all logs
}

// node is one node of the fleet. Fields are guarded by the fleet's mu.
type node struct {
	name   string
	ctx    context.Context // done when the node is lost: its processes and reports end with it
	cancel context.CancelFunc
	silent bool
	heard  chan struct{} // closed while the node is not silent
	lost   bool
	hidden bool   // its slice is not published
	fails  string // "", or why containers cannot be created
	slow   time.Duration
	cut    chan struct{} // closed when connections for logs are broken
}

// fleetLabel is on everything that a fleet makes, for cleaning up.
const fleetLabel = "fakenode.trainyard.dev/fleet"

// Start makes a fleet without nodes, and the DeviceClass. When t ends it takes all nodes away, and reports violations
// as failures of t.
func Start(t testing.TB, config *rest.Config, o Options) *Fleet {
	t.Helper()
	config = rest.CopyConfig(config)
	config.UserAgent = "fakenode"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatalf("fakenode: %v", err)
	}
	f := &Fleet{
		options: o.withDefaults(), client: client, id: strings.ToLower(rand.Text()),
		nodes: map[string]*node{}, pods: map[types.UID]*pod{}, books: books{},
	}
	ctx, cancel := context.WithCancel(context.Background()) // not t's, which is done before the clean-up
	f.ctx = ctx
	stop := f.serveLogs()
	t.Cleanup(func() {
		cancel()
		stop()
		f.wait.Wait()
		if err := f.cleanUp(); err != nil {
			t.Logf("fakenode: %v", err)
		}
		for _, v := range f.Violations() {
			if !o.Tolerate {
				t.Errorf("fakenode: %s", v)
			}
		}
	})
	if err := f.createClass(ctx); err != nil {
		t.Fatalf("fakenode: %v", err)
	}
	if err := f.listen(ctx); err != nil {
		t.Fatalf("fakenode: %v", err)
	}
	return f
}

func (o Options) withDefaults() Options {
	if o.Product == "" {
		o.Product = "NVIDIA H100 80GB HBM3"
	}
	if o.MemoryGiB == 0 {
		o.MemoryGiB = 80
	}
	if o.EnvSharers == 0 {
		o.EnvSharers = 1
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.Run == nil {
		o.Run = Script(0, 0, 0)
	}
	return o
}

// listen starts one watch of pods, one of claims and one of nodes for the whole fleet, and returns once all have
// listed.
func (f *Fleet) listen(ctx context.Context) error {
	var controllers []cache.Controller
	watch := func(c cache.Getter, resource, fields string, object runtime.Object,
		h cache.ResourceEventHandlerFuncs) cache.Store {
		set := func(o *metav1.ListOptions) { o.FieldSelector = fields }
		store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.NewFilteredListWatchFromClient(c, resource, metav1.NamespaceAll, set),
			ObjectType:    object,
			Handler:       h,
		})
		controllers = append(controllers, controller)
		return store
	}
	core := f.client.CoreV1().RESTClient()
	f.podStore = watch(core, "pods", "spec.nodeName!=", &corev1.Pod{}, handlers(f.podSeen, f.podGone))
	f.nodeStore = watch(core, "nodes", "", &corev1.Node{}, handlers(f.nodeSeen, func(*corev1.Node) {}))
	f.claimStore = watch(f.client.ResourceV1().RESTClient(), "resourceclaims", "", &resourcev1.ResourceClaim{},
		handlers(f.claimSeen, f.claimSeen))
	for _, c := range controllers {
		f.wait.Go(func() { c.RunWithContext(ctx) })
	}
	synced := make([]cache.InformerSynced, len(controllers))
	for i, c := range controllers {
		synced[i] = c.HasSynced
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("no list of pods, nodes and claims")
	}
	return nil
}

// handlers calls seen for what is new or changed and gone for what was deleted.
func handlers[T runtime.Object](seen, gone func(T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { seen(o.(T)) },
		UpdateFunc: func(_, o any) { seen(o.(T)) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			gone(o.(T))
		},
	}
}

// Names returns n names of nodes: prefix-000 and up.
func Names(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%03d", prefix, i)
	}
	return names
}

// UUID is that of a GPU of a node.
func UUID(node string, gpu int) string { return uuidPrefix(node) + strconv.Itoa(gpu) }

func uuidPrefix(node string) string { return "GPU-" + node + "-" }

// Violations returns what happened that must not: devices held twice, or not there.
func (f *Fleet) Violations() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.violations)
}

// Running returns the number of processes that run, those asked to stop and those of silent nodes included.
func (f *Fleet) Running() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running
}

// violate notes a violation, once. Callers hold mu.
func (f *Fleet) violate(format string, args ...any) {
	if v := fmt.Sprintf(format, args...); !slices.Contains(f.violations, v) {
		f.violations = append(f.violations, v)
	}
}
