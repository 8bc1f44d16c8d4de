package controlplane

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// Ensure that the servers have the version that the module pins.
func TestVersion(t *testing.T) {
	version, err := Shared(t).Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.GitVersion != "v1.36.3" || version.Major != "1" || version.Minor != "36" {
		t.Errorf("version %s, major %s, minor %s; want v1.36.3, 1, 36", version.GitVersion, version.Major,
			version.Minor)
	}
}

// Ensure that the controllers run: one of them gives every namespace its service account.
func TestControllerManagerRuns(t *testing.T) {
	c := Shared(t)
	err := c.await(t.Context(), nil, "service account", func() error {
		_, err := c.Client().CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Ensure that what is stored outlives the API server, that requests fail while it is down, and that the audit says who
// asked for what.
func TestRestartAndAudit(t *testing.T) {
	c, ctx := Start(t, Options{Audit: true}), t.Context()
	maps := c.Client().CoreV1().ConfigMaps("default")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := maps.Create(ctx, kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	c.StopAPIServer()
	if _, err := maps.Get(ctx, "kept", metav1.GetOptions{}); err == nil {
		t.Error("a request succeeded while the API server was down")
	}
	if err := c.StartAPIServer(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart: %v", err)
	}

	none := c.Config()
	none.Impersonate = rest.ImpersonationConfig{UserName: "unknown"}
	denied := kubernetes.NewForConfigOrDie(none).CoreV1().ConfigMaps("default")
	if err := denied.Delete(ctx, "kept", metav1.DeleteOptions{}); err == nil {
		t.Error("no one may delete")
	}

	var writes []string
	for _, r := range c.Requests(t) {
		if strings.HasPrefix(r.User, "kube-") || strings.HasPrefix(r.User, "system:apiserver") {
			t.Errorf("the control plane's own request is in the audit: %+v", r)
		}
		if r.Writes() {
			writes = append(writes, r.User+" "+r.Verb+" "+r.Resource+" "+r.Name)
		}
	}
	want := []string{"admin create configmaps kept", "unknown delete configmaps kept"}
	if !slices.Equal(writes, want) {
		t.Errorf("writes %q, want %q", writes, want)
	}
}

// Ensure that a server that cannot start is reported at once, with its log, and leaves nothing behind.
func TestLaunchFails(t *testing.T) {
	bins := t.TempDir()
	script := "#!/bin/sh\necho no disk >&2\nexit 3\n"
	if err := os.WriteFile(bins+"/etcd", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := launch(bins, Options{})
	if err == nil {
		t.Fatal("launch succeeded")
	}
	for _, want := range []string{"etcd ended while starting: exit status 3", "no disk"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Ensure that no two of us are given the same port.
func TestPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.release)
		if seen[p.number] {
			t.Errorf("port %d twice", p.number)
		}
		seen[p.number] = true
	}
}

// Ensure that waiting ends with the context.
func TestAwaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := new(Cluster).await(ctx, nil, "it", func() error { return context.Canceled })
	if err == nil || !strings.HasPrefix(err.Error(), "it did not get ready") {
		t.Errorf("await: %v", err)
	}
}
