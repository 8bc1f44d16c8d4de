//go:build !invariants

package scenario

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a PyTorch training by torchrun is narrowed under optimus for the sake of another job: its ranks save, and
// it goes on from the very step with another world size, batch size and learning rate, to its end.
func TestOptimusResizesTorchrun(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("/usr/bin/python3", "-c", "import torch").CombinedOutput(); err != nil {
		t.Skipf("no PyTorch: apt-get install --no-install-recommends python3-torch (%v)\n%s", err, out)
	}
	example, err := filepath.Abs("../../examples/pytorch/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, "optimus", device.Slots(2), free("oracle"))
	s.options.Knows = growing(2)
	s.run()
	train := s.submit(`jobs: [{name: train, model: net, grace: 2m, gpus: {min: 1, max: 2}, batch: {global_min: 64, global_max: 128, per_gpu_max: 64, lr_scaling: linear},
  command: [sh, -c, 'echo "scale $TRAINYARD_LR_SCALE"; exec "$0" --epochs 1 --dataset 4096 --report-every 1 --step-time 0.05', ` + example + `]}]`)
	s.await(0, "the training makes steps", func(e *sched.Event) bool {
		return e.Kind == sched.Progressed && e.Job == train && e.Value > 4
	})
	guest := s.submit("jobs: [{name: guest, command: " + until("go") + "}]")
	s.started(guest, 1)
	s.finished(train)
	s.let("go")
	s.finished(guest)
	s.wantAttempt(train, 1, 2, 128, "2")
	s.wantAttempt(train, 2, 1, 64, "1")
	if output := s.output(train, 2); !strings.Contains(output, "TRAINYARD done steps=") {
		t.Errorf("the last attempt was not the last:\n%s", output)
	}
}
