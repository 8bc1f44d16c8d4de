package e2e

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

var defined sync.Once

// apiOf returns a client of the shared control plane, which knows the definitions and runs no controller of ours. Tests
// leave nothing behind.
func apiOf(t *testing.T) client.Client {
	t.Helper()
	plane := controlplane.Shared(t)
	api := clientOf(t, plane)
	defined.Do(func() { define(t, api) })
	return api
}

// clientOf returns a client of the administrator.
func clientOf(t testing.TB, plane *controlplane.Cluster) client.Client {
	t.Helper()
	scheme := controller.Scheme()
	must(t, apiextensionsv1.AddToScheme(scheme))
	api, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	must(t, err)
	return api
}

// rigOn is a rig with all that is to be applied to a cluster, and no policy, on a control plane that runs.
func rigOn(t testing.TB, plane *controlplane.Cluster, nodes int, o fakenode.Options) *rig {
	t.Helper()
	r := &rig{t: t, plane: plane, api: clientOf(t, plane), space: "lab"}
	define(t, r.api)
	install(t, r.api)
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.space}})
	r.fleet = fakenode.Start(t, plane.Config(), o)
	must(t, r.fleet.Add(t.Context(), fakenode.Names("node", nodes)...))
	r.fleet.WaitReady(t)
	t.Cleanup(r.kill)
	return r
}
