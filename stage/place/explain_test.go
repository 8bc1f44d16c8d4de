package place

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that placements by score say the class of a job and the score of what it is to hold.
func TestExplain(t *testing.T) {
	bins := []variability.Bins{{Bin: []int{0, 1}, SF: []float64{0.9, 1.5}}, {Bin: []int{0, 1}, SF: []float64{1, 1.1}}}
	s := NewScores(bins, func(_ *sched.View, j sched.JobID) int { return int(j) })
	spec := &sched.JobSpec{GPUs: sched.Rigid(2)}
	v := &sched.View{Jobs: []sched.Job{{Spec: spec}, {Spec: spec, Target: []sched.GPUID{0, 1}}}}
	for _, c := range []struct {
		e    sched.Explainer
		job  sched.JobID
		want string
	}{
		{PAL{Scores: s, Penalty: TwoLevel(1.5)}, 0, "class=A0 locality-penalty=1.5"},
		{PAL{Scores: s, Penalty: TwoLevel(1.5)}, 1, "class=B0 slowest-score=1.1 locality-penalty=1.5"},
		{PMFirst{Scores: s}, 1, "class=B0 slowest-score=1.1"},
	} {
		var list []string
		c.e.Explain(v, c.job, func(f sched.Fact) {
			list = append(list, fmt.Sprintf("%s=%s%v", f.Name, f.Text, f.Value))
		})
		if got := strings.Join(list, " "); got != c.want {
			t.Errorf("%T of job %d: %s, want %s", c.e, c.job, got, c.want)
		}
	}
}
