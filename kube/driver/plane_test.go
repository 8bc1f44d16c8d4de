package driver_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/trainyard/trainyard/driver/drivertest"
	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver"
	"github.com/trainyard/trainyard/kube/driver/observer"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
	"github.com/trainyard/trainyard/sched"
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m)) }

// Ensure that the driver does what is asked of any in a real control plane, in the modes that name devices by claims.
func TestConformanceInARealControlPlane(t *testing.T) {
	plane := controlplane.Shared(t)
	install(t, plane.Config())
	for _, mode := range []v1alpha1.Mode{v1alpha1.Pinned, v1alpha1.Direct} {
		t.Run(string(mode), func(t *testing.T) {
			drivertest.Run(t, func(t *testing.T) (sched.Driver, drivertest.Bench) {
				f := openReal(t, plane.Config(), mode)
				return f, drivertest.Bench{Short: 3 * time.Second, Long: 6 * time.Second, Endless: true}
			})
		})
	}
}

// install defines TrainingJobs and their like.
func install(t *testing.T, config *rest.Config) {
	t.Helper()
	if _, err := envtest.InstallCRDs(config,
		envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "config", "crds.yaml")}}); err != nil {
		t.Fatal(err)
	}
}

// openReal returns a driver that sees a node of two GPUs and a namespace of its own, named after the test.
func openReal(t *testing.T, config *rest.Config, mode v1alpha1.Mode) *driver.Folding {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	config.QPS = -1
	name := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:] + "-" + string(mode))
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(v1alpha1.AddToScheme(scheme))
	fleet := fakenode.Start(t, config, fakenode.Options{GPUs: 2, Run: func(p *fakenode.Process) int {
		run := time.Duration(0)
		if strings.HasPrefix(p.Pod.Name, "b-") {
			run = 200 * time.Millisecond
		}
		return fakenode.Script(run, 50*time.Millisecond, 0)(p)
	}})
	must(fleet.Add(t.Context(), name))
	fleet.WaitReady(t)
	mine, err := labels.NewRequirement(corev1.LabelHostname, selection.Equals, []string{name})
	must(err)
	within := cache.ByObject{Namespaces: map[string]cache.Config{name: {}}}
	c, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: driver.Lean,
		ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Label: labels.NewSelector().Add(*mine)},
			&corev1.Pod{}: within, &v1alpha1.TrainingJob{}: within}})
	must(err)
	api, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: c}})
	must(err)
	direct, err := client.New(config, client.Options{Scheme: scheme})
	must(err)
	must(direct.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	queue := observer.NewQueue()
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error)
	go func() { over <- c.Start(ctx) }()
	must(queue.Watch(ctx, c, mode))
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache is not in step")
	}
	d := driver.New(driver.Options{Client: api, Reader: direct, Queue: queue, Origin: time.Now(), Mode: mode,
		DeviceClass: fakenode.Driver, StartTimeout: 10 * time.Minute,
		Types: func(string) (sched.TypeID, error) { return 0, nil },
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(func() {
		if t.Failed() {
			show(t, direct, name)
		}
		d.Close()
		stop()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
	var jobs []client.Object
	// with the finalizer, which else is written to all at once: then any may be met first
	for _, j := range []string{"a", "b", "c"} {
		tj := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: j,
			Finalizers: []string{v1alpha1.Finalizer}}}
		tj.Spec.GPUs.Min = 1
		tj.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "train"}}
		jobs = append(jobs, tj)
	}
	return &driver.Folding{Driver: d, State: engine.NewState(eventlog.Header{Types: []string{"H100"}, ShareLimit: 1}),
		API: direct, Jobs: jobs}
}

// show prints the pods of a namespace.
func show(t *testing.T, api client.Client, namespace string) {
	t.Helper()
	var pods corev1.PodList
	if err := api.List(context.Background(), &pods, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		t.Logf("pod %s on %q, to go %v: %+v", p.Name, p.Spec.NodeName, p.DeletionTimestamp, p.Status)
	}
}
