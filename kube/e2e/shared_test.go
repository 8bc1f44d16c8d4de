package e2e

import (
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/controller"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

var defined sync.Once

// apiOf returns a client of the shared control plane, which knows the definitions and runs no controller of ours. Tests leave nothing
// behind.
func apiOf(t *testing.T) client.Client {
	t.Helper()
	plane := controlplane.Shared(t)
	scheme := controller.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	defined.Do(func() { define(t, api) })
	return api
}
