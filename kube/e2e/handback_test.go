//go:build handover

package e2e

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/controlplane"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// OldProgramVar names the controller that a cluster is handed over from, and back to: an older build of
// cmd/trainyard-kube.
const OldProgramVar = "TRAINYARD_OLD_KUBE"

// Ensure that the present controller takes over the jobs of an older one, and that the older one takes them back after
// records were written as it knows them: none is started again, none is lost, whatever was done meanwhile.
func TestHandBack(t *testing.T) {
	old := os.Getenv(OldProgramVar)
	if old == "" {
		t.Fatalf("%s is not set, want the path of an older controller; make handover-kube BASE=COMMIT builds one",
			OldProgramVar)
	}
	r := newRig(t, 4, fakenode.Options{GPUs: 2, Run: fakenode.Script(0, 0, 0)},
		v1alpha1.SchedulerPolicySpec{System: "fifo"})
	names := make([]string, 12)
	start := func(path string, args ...string) *controlplane.Program {
		args = append([]string{"--kubeconfig", r.plane.Kubeconfig()}, args...)
		p, err := r.plane.Launch("trainyard-kube", path, args...)
		must(t, err)
		t.Cleanup(func() {
			p.Kill()
			if t.Failed() {
				t.Logf("%+v\n%s", r.status(names[0]), tail(p.Log))
			}
		})
		return p
	}
	known := func(tj *v1alpha1.TrainingJob) { tj.Spec.Preemptible = "" } // older controllers do not know the field
	p := start(old)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
		r.create(r.job(names[i], 1, known))
		if i < 8 {
			r.until(names[i], v1alpha1.Running)
		}
	}
	r.suspend(names[11], true)
	pods := func() map[string]types.UID {
		var list corev1.PodList
		must(t, r.api.List(t.Context(), &list, client.InNamespace(r.space)))
		uids := make(map[string]types.UID)
		for _, p := range list.Items {
			uids[p.Name] = p.UID
		}
		return uids
	}
	before := pods()
	leads := r.policy().Status.Leader
	for _, turn := range []struct {
		path string
		args []string
	}{{build(t), nil}, {build(t), []string{"--record-schema", "1"}}, {old, nil}, {build(t), nil}} {
		p.Kill()
		p = start(turn.path, turn.args...)
		eventually(t, fmt.Sprint(turn, " leads"), func() bool { return r.policy().Status.Leader > leads })
		leads = r.policy().Status.Leader
		extra := fmt.Sprint("extra-", leads)
		r.create(r.job(extra, 1, known))
		eventually(t, extra+" waits", func() bool { return r.status(extra).Phase == v1alpha1.Pending })
		r.remove(extra)
		for _, name := range names[:8] {
			if st := r.status(name); st.Phase != v1alpha1.Running || st.Attempt != 1 {
				t.Errorf("%v: %s is %s in attempt %d", turn, name, st.Phase, st.Attempt)
			}
		}
		for name, uid := range pods() {
			if before[name] != uid {
				t.Errorf("%v: pod %s is another", turn, name)
			}
		}
	}
	r.suspend(names[11], false)
	for _, name := range names[:4] {
		r.remove(name)
	}
	for _, name := range names[8:] { // which came in the same second, so that any may be first
		r.until(name, v1alpha1.Running)
	}
}
