package share

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/model/footprint"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that joins say which figure of memory keeps a rigid job that waits from others, where they go by these; of one
// that may have other widths, which joins no one, they say nothing.
func TestJoinsNameTheFigure(t *testing.T) {
	for _, c := range []struct {
		peaks *footprint.Peaks
		most  int32
		want  string
	}{
		{footprint.New(), 1, "gpu-memory=20 GB, stated no-room-1=GPU 0 of a: job 0: " + footprint.Missing},
		{footprint.New(), 2, ""},
		{nil, 1, ""},
	} {
		v := &sched.View{ShareLimit: 2, GPUs: make([]sched.GPU, 1),
			Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "a", GPUs: 1, GPUMemGB: 80}, State: sched.NodeUp}},
			Jobs: []sched.Job{
				{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, State: sched.Active, Target: []sched.GPUID{0}},
				{Spec: &sched.JobSpec{GPUs: sched.Range{Min: 1, Want: 1, Max: c.most}, GPUMemGB: 20,
					Share: sched.ShareAllow}, State: sched.Waiting},
			}}
		know := Known{Peaks: c.peaks, Learner: interference.NewLearner(&interference.History{})}
		s := &Joins{Company: NewCompany(know, Limits{Rule: Rule{Use: 1, Memory: 1, Most: 2}})}
		s.Resume(v)
		var said []string
		s.Explain(v, 1, func(f sched.Fact) { said = append(said, f.Name+"="+f.Text) })
		if got := strings.Join(said, " "); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
