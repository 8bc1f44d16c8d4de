package driver

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job runs on exactly its GPUs, knows what it needs to know, and that nothing of it is left but its
// pods.
func TestJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t,
			slices.Concat(objects.Node("a", 4), objects.Node("b", 4),
				[]client.Object{objects.Job("train", 3, map[string]string{lifetime: "10s"})})...)
		w := open(t, c, nil)
		if len(w.v.Nodes) != 2 || len(w.v.Jobs) != 1 || w.v.Nodes[0].Spec.GPUMemGB != 32 ||
			w.v.Nodes[0].Spec.Devices[3] != "GPU-a-3" {
			t.Fatalf("nodes %+v, %d jobs", w.v.Nodes, len(w.v.Jobs))
		}
		w.start(0, 1, 3, 6)
		w.settle()
		w.attempt(0, sched.Running)
		first, second := w.podOf("train-1-0"), w.podOf("train-1-1")
		if got := w.claimNamed("train-1-r0").Spec.Devices.Requests[0].Exactly.Selectors[0].CEL.Expression; got !=
			`device.attributes["gpu.nvidia.com"].uuid in ["GPU-a-1", "GPU-a-3"]` {
			t.Errorf("claim of the first rank selects %s", got)
		}
		if first.Spec.NodeName != "a" || second.Spec.NodeName != "b" {
			t.Errorf("pods on %s and %s, want a and b", first.Spec.NodeName, second.Spec.NodeName)
		}
		for name, want := range map[string]string{"WORLD_SIZE": "3", "NODE_RANK": "1", "PET_NNODES": "2",
			"MASTER_ADDR":        "train-1-0.train-1.lab.svc",
			"TRAINYARD_NUM_GPUS": "3", "TRAINYARD_DEVICES": "GPU-b-2", "TRAINYARD_RESUME": "0",
			"TRAINYARD_GRACE_SECONDS": "30"} {
			if got := variable(second, name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		w.pass(11 * time.Second)
		if w.v.Jobs[0].Outcome != sched.Finished || len(w.of(sched.AttemptEnded)) != 1 {
			t.Fatalf("outcome %v, reported %v", w.v.Jobs[0].Outcome, kinds0(w.events))
		}
		if w.claimNamed("train-1-r0") != nil || w.claimNamed("train-1-r1") != nil || w.podOf("train-1-0") == nil {
			t.Error("want the claims gone, and the pods there for their logs")
		}
		must(t, w.Delete(t.Context(), objects.Job("train", 3, nil)))
		w.settle()
		err := w.Get(t.Context(), types.NamespacedName{Namespace: space, Name: "train"}, &v1alpha1.TrainingJob{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("the finished job cannot be deleted: %v", err)
		}
	})
}
