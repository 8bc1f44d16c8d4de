package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/internal/fakenode"
)

// Ensure that a job which is too large for its status to be written with it is refused, as far as it can be reported,
// and keeps no one waiting.
func TestLargeJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, fakenode.Options{GPUs: 2, Run: fakenode.Script(100*time.Millisecond, 0, 0)},
		v1alpha1.SchedulerPolicySpec{Limits: v1alpha1.Limits{JobBytes: 512 << 10}})
	of := func(name string, size int) *v1alpha1.TrainingJob {
		return r.job(name, 1, func(j *v1alpha1.TrainingJob) {
			j.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", size)}
		})
	}
	most, refused := 1_400_000, 1_600_000 // bytes that the API server takes, and does not
	for refused-most > 50 {
		try := of("most", (most+refused)/2)
		if err := r.api.Create(t.Context(), try); err != nil {
			refused = (most + refused) / 2
			continue
		}
		most = (most + refused) / 2
		must(t, r.api.Delete(t.Context(), try))
	}
	r.create(of("most", most))
	r.create(of("large", 600<<10))
	r.create(of("fits", 500<<10))
	r.create(r.job("small", 1))
	r.serve()
	r.until("small", v1alpha1.Succeeded)
	r.until("fits", v1alpha1.Succeeded)
	r.until("large", v1alpha1.Failed)
	if got := r.status("large").Reason; !strings.Contains(got, "it has 600 KiB, want at most 512") {
		t.Errorf("reason %q, want how large it is and may be", got)
	}
	r.untilReported("most", "Warning Invalid")
}
