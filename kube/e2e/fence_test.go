package e2e

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
)

// Ensure that a leader that is stopped, so that another takes over, and then goes on, writes nothing any more, not even
// the lease that it finds taken, and ends; and that the other does all the work, once, and gives the lease up when it
// is asked to end.
func TestStaleLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, controlplane.Options{Audit: true}, 2, preemptive)
	elect := []string{"--leader-elect", "--lease", "5s"}
	old := w.launchAs("first", w.kubeconfigOf("first"), elect...)
	for i := range 8 {
		w.submit(string(rune('a'+i)), 2, 0)
	}
	for _, name := range w.jobs[:4] {
		w.at(name, 1)
	}
	next := w.launchAs("second", w.kubeconfigOf("second"), elect...)
	for _, name := range w.jobs[:4] {
		w.finish("lab/" + name) // while the leader is being stopped
	}
	if err := old.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	leader := w.policy().Status.Leader
	eventually(t, "the second leads", func() bool { return w.policy().Status.Leader > leader })
	for _, name := range []string{"x", "y", "z"} {
		w.submit(name, 1, 0)
		w.at(name, 1)
	}
	before := w.writes("first")
	if err := old.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.Done():
	case <-time.After(patience):
		t.Fatal("a leader that was replaced goes on")
	}
	for _, r := range w.writes("first")[len(before):] {
		t.Errorf("a leader that was replaced wrote: %+v", r)
	}
	for _, name := range w.jobs[4:] {
		w.finish("lab/" + name)
	}
	w.settle()
	for _, name := range w.jobs {
		if st := w.status(name); st.Attempt != 1 || st.Phase != v1alpha1.Succeeded {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if err := next.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-next.Done()
	var lease coordinationv1.Lease
	must(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "trainyard", Name: "trainyard"}, &lease))
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("whoever leads next waits for the lease that %s kept", *holder)
	}
}

// writes are the requests of a user that changed something.
func (w *world) writes(user string) (list []controlplane.Request) {
	w.t.Helper()
	for _, r := range w.plane.Requests(w.t) {
		if r.User == user && r.Writes() && r.Code < 300 {
			list = append(list, r)
		}
	}
	return list
}

// kubeconfigOf writes a kubeconfig of an administrator who acts under a name, so that the audit says who did what.
func (w *world) kubeconfigOf(user string) string {
	w.t.Helper()
	c, err := clientcmd.LoadFromFile(w.plane.Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	for name, auth := range c.AuthInfos {
		c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: auth.Token, Impersonate: user,
			ImpersonateGroups: []string{"system:masters"}}
	}
	path := filepath.Join(w.t.TempDir(), user)
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		w.t.Fatal(err)
	}
	return path
}
