// Package e2e runs the whole of Trainyard's Kubernetes part on a real control plane, with pretended nodes.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/config"
	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// patience bounds waits for what must come: machines are slow at times.
const patience = 3 * time.Minute

// rig is a cluster with Trainyard's API, nodes, and one controller at a time.
type rig struct {
	t     testing.TB
	plane *controlplane.Cluster
	api   client.Client
	fleet *fakenode.Fleet
	space string // namespace of the jobs
	user  string // whom the controller acts as; "" = the administrator
	log   bytes.Buffer
	stop  func()
}

// newRig prepares a control plane of the test's own: the policy is one for the whole cluster.
func newRig(t testing.TB, nodes int, o fakenode.Options, policy v1alpha1.SchedulerPolicySpec) *rig {
	t.Helper()
	return newRigOn(t, controlplane.Options{}, nodes, o, policy)
}

// newRigOn is newRig with a control plane that is not the ordinary one.
func newRigOn(t testing.TB, plane controlplane.Options, nodes int, o fakenode.Options,
	policy v1alpha1.SchedulerPolicySpec) *rig {
	t.Helper()
	r := &rig{t: t, plane: controlplane.Start(t, plane), space: "lab"}
	c := r.plane.Config()
	scheme := controller.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.api, err = client.New(c, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	define(t, r.api)
	for _, o := range manifests(t) {
		if o.GetKind() == "PriorityClass" {
			r.create(o)
		}
	}
	for _, name := range []string{"trainyard", r.space} {
		r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	r.create(&v1alpha1.SchedulerPolicy{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: policy})
	r.fleet = fakenode.Start(t, c, o)
	if err := r.fleet.Add(t.Context(), fakenode.Names("node", nodes)...); err != nil {
		t.Fatal(err)
	}
	r.fleet.WaitReady(t)
	t.Cleanup(r.kill)
	return r
}

// define makes the definitions known to the API server, as kubectl apply does.
func define(t testing.TB, api client.Client) {
	t.Helper()
	for _, doc := range bytes.Split(config.CRDs, []byte("\n---\n")) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(doc, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Name == "" {
			continue
		}
		if err := api.Create(t.Context(), &crd); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	eventually(t, "definitions are established", func() bool {
		var list v1alpha1.TrainingJobList
		var pools v1alpha1.GPUPoolList
		var profiles v1alpha1.GPUProfileList
		var policies v1alpha1.SchedulerPolicyList
		return errors.Join(api.List(t.Context(), &list), api.List(t.Context(), &pools),
			api.List(t.Context(), &profiles), api.List(t.Context(), &policies)) == nil
	})
}

func (r *rig) create(o client.Object) {
	r.t.Helper()
	if err := r.api.Create(r.t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		r.t.Fatal(err)
	}
}

// locked writes to the log of a test, for several at once. What comes when the test is over is dropped:
// controller-runtime goes on to say that it ends.
type locked struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

func newLocked(t testing.TB) *locked {
	l := &locked{t: t}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
	})
	return l
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		l.t.Log(strings.TrimRight(string(b), "\n"))
	}
	return len(b), nil
}

// serve starts a controller.
func (r *rig) serve(change ...func(*controller.ServeOptions)) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := controller.ServeOptions{Namespace: "trainyard", Version: "test", Record: &r.log, PriorityClass: "trainyard",
		Log: slog.New(slog.NewTextHandler(newLocked(r.t), &slog.HandlerOptions{Level: slog.LevelInfo}))}
	for _, f := range change {
		f(&o)
	}
	c := r.plane.Config()
	c.Impersonate.UserName = r.user
	done := make(chan error, 1)
	go func() { done <- controller.Serve(ctx, c, o) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			r.t.Errorf("controller: %v", err)
		}
	}
}

// kill ends the controller, if one runs.
func (r *rig) kill() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// job describes a job of so many GPUs.
func (r *rig) job(name string, gpus int32, change ...func(*v1alpha1.TrainingJob)) *v1alpha1.TrainingJob {
	j := &v1alpha1.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: r.space, Name: name},
		Spec: v1alpha1.TrainingJobSpec{Preemptible: v1alpha1.PreemptAlways,
			GPUs: v1alpha1.Width{Min: gpus}, Checkpoint: v1alpha1.Checkpoint{GraceSeconds: 10},
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "train", Image: "none"}}}}}}
	for _, f := range change {
		f(j)
	}
	return j
}

// status returns how a job stands.
func (r *rig) status(name string) v1alpha1.TrainingJobStatus {
	r.t.Helper()
	var j v1alpha1.TrainingJob
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Namespace: r.space, Name: name}, &j); err != nil {
		r.t.Fatal(err)
	}
	return j.Status
}

// policy returns the policy.
func (r *rig) policy() *v1alpha1.SchedulerPolicy {
	r.t.Helper()
	var p v1alpha1.SchedulerPolicy
	if err := r.api.Get(r.t.Context(), client.ObjectKey{Name: "default"}, &p); err != nil {
		r.t.Fatal(err)
	}
	return &p
}

// until waits for a job to be in a phase.
func (r *rig) until(name string, phase v1alpha1.Phase) v1alpha1.TrainingJobStatus {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s is %s", name, phase), func() bool { return r.status(name).Phase == phase })
	return r.status(name)
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
