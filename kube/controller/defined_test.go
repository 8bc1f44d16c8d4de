package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
)

// discovery answers as an API server whose resources of ours are of these kinds.
func discovery(t *testing.T, kinds ...string) *rest.Config {
	t.Helper()
	group := metav1.APIGroup{Name: v1alpha1.GroupVersion.Group,
		Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: v1alpha1.GroupVersion.String(),
			Version: v1alpha1.GroupVersion.Version}}}
	resources := metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()}
	for _, kind := range kinds {
		resources.APIResources = append(resources.APIResources,
			metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
	}
	answers := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}, "/apis": metav1.APIGroupList{},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}}}
	if len(kinds) > 0 {
		answers["/apis"] = metav1.APIGroupList{Groups: []metav1.APIGroup{group}}
		answers["/apis/"+group.Name], answers["/apis/"+resources.GroupVersion] = group, resources
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		body, err := json.Marshal(answer)
		if err == nil {
			_, err = w.Write(body)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// Ensure that where definitions are missing one error says which, and what to do, whether or not anything is to be
// decided.
func TestUndefined(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		want  string
	}{
		{nil, "TrainingJob, SchedulerPolicy, GPUPool, GPUProfile"},
		{[]string{"TrainingJob", "GPUPool"}, "SchedulerPolicy, GPUProfile"},
	} {
		for _, observe := range []bool{false, true} {
			err := Serve(t.Context(), discovery(t, c.kinds...),
				ServeOptions{Namespace: "trainyard", Observe: observe, Log: slog.New(slog.DiscardHandler)})
			want := fmt.Sprintf("the cluster has no definition of %s (trainyard.dev/v1alpha1): apply what "+
				"`trainyard-kube manifests` prints, "+
				"or, for --observe alone, `trainyard-kube manifests --crds`", c.want)
			if !errors.Is(err, ErrUndefined) || err.Error() != want {
				t.Errorf("observe %v: %v, want %s", observe, err, want)
			}
		}
	}
}
