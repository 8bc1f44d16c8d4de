package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key/keytest"
)

func tables() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "tables"}, Data: map[string]string{}}
}

func putFile(t *testing.T, api client.Client, name, text string) {
	t.Helper()
	var m corev1.ConfigMap
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(tables()), &m); err != nil {
		t.Fatal(err)
	}
	m.BinaryData = map[string][]byte{name: []byte(text)}
	if err := api.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
}

// Ensure that wrong settings of a policy are refused in the words of all programs.
func TestSettingsAreRefusedInTheSameWords(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(tables()).Build()
	c := &Controller{o: Options{Reader: api, Namespace: "ns"}}
	put := func(t *testing.T, name, text string) { putFile(t, api, name, text) }
	give := func(name string, settings map[string]string) error {
		k, _, err := c.known(t.Context(), &v1alpha1.SchedulerPolicySpec{System: name, Settings: settings}, nil)
		if err == nil {
			_, err = system.Live(&eventlog.Header{System: name, Settings: settings, GPUs: 8, NodeGPUs: 4}, k)
		}
		return err
	}
	keytest.Run(t, slices.Concat(keytest.Cases, keytest.Abroad), "tables/", put, give)
}

// Ensure that a file is read from a ConfigMap, that a path that names none is refused, and that no system is made where
// the API does not answer.
func TestFilesAreReadFromConfigMaps(t *testing.T) {
	silent := false
	m := tables()
	m.Data["sizes.csv"] = "duration\n10\n20\n"
	get := func(ctx context.Context, api client.WithWatch, k client.ObjectKey, o client.Object,
		opts ...client.GetOption) error {
		if silent {
			return apierrors.NewServiceUnavailable("away")
		}
		return api.Get(ctx, k, o, opts...)
	}
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(m).Build(),
		interceptor.Funcs{Get: get})
	c := &Controller{o: Options{Reader: api, Namespace: "ns"}}
	spec := func(path string) *v1alpha1.SchedulerPolicySpec {
		return &v1alpha1.SchedulerPolicySpec{System: "tiresias-gittins",
			Settings: map[string]string{"distribution": path}}
	}
	k, read, err := c.known(t.Context(), spec("tables/sizes.csv"), nil)
	if err != nil || len(k.Files) != 1 || read["tables"] == "" {
		t.Errorf("%v, read %v of %v", err, k.Files, read)
	}
	want := "distribution: open sizes.csv: want CONFIGMAP/KEY, of a ConfigMap in the controller's namespace; " +
		"want a file with one column headed duration"
	if _, _, err = c.known(t.Context(), spec("sizes.csv"), nil); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	silent = true
	if _, _, err = c.known(t.Context(), spec("tables/sizes.csv"), nil); !errors.Is(err, errUnanswered) {
		t.Errorf("%v, want to ask again", err)
	}
}

// Ensure that a run ends when a file that its system was built from changes or comes, and not before.
func TestFilesAreWatched(t *testing.T) {
	api := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(tables()).Build()
	c := &Controller{o: Options{Reader: api, Namespace: "ns"}}
	var m corev1.ConfigMap
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(tables()), &m); err != nil {
		t.Fatal(err)
	}
	for _, change := range []bool{false, true} {
		ctx, stop := context.WithCancelCause(t.Context())
		if change {
			putFile(t, api, "x.csv", "x")
		}
		over, end := context.WithTimeout(ctx, 50*time.Millisecond)
		c.watchFiles(over, files{"tables": m.ResourceVersion}, time.Millisecond, stop)
		end()
		if got := context.Cause(ctx); errors.Is(got, ErrReload) != change {
			t.Errorf("changed %v: %v", change, got)
		}
		stop(nil)
	}
}
