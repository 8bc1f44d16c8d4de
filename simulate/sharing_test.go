package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/driver/sim"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that jobs slow each other down by the mechanism of their nodes, of which there may be one: under MPS by their
// uses, of which the tables of plain sharing say nothing.
func TestSharingMechanism(t *testing.T) {
	for how, want := range map[sched.Mechanism]float64{sched.TimeSlicing: 1.2, sched.MPS: 1 / .97, sched.MIG: 1} {
		c := &cluster.Cluster{Types: []string{"v100"},
			Nodes: []sched.NodeSpec{{GPUs: 8, Sharing: how}, {GPUs: 8, Sharing: how}}}
		var r sim.Runtime
		sets := []interference.Set{{Place: interference.Place{GPU: "v100", Width: 8}, Models: []string{"a", "b"},
			Slow: []float64{1.2, 1.2}}}
		if err := interfere(sets, c, 0, 0, &r); err != nil {
			t.Fatal(err)
		}
		a := trace.Job{Spec: sched.JobSpec{Model: "a", GPUs: sched.Rigid(8), Util: .5}}
		b := trace.Job{Spec: sched.JobSpec{Model: "b", GPUs: sched.Rigid(8), Util: .5}}
		if got := r.Interference(&a, []*trace.Job{&b}); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", how, got, want)
		}
		c.Nodes[1].Sharing = (how + 1) % sched.Mechanisms
		err := interfere(sets, c, 0, 0, &r)
		if wanted := fmt.Sprintf("interference: nodes that share by %v and by %v, want a cluster of one mechanism", how,
			c.Nodes[1].Sharing); err == nil || err.Error() != wanted {
			t.Errorf("%v, want %s", err, wanted)
		}
	}
}

// Ensure that no input makes the reader panic.
func FuzzReadSharing(f *testing.F) {
	f.Add("set,n_jobs\nJ1,1\n")
	f.Add(`{"v100": {"('A', 1)": {"null": 1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ReadSharing(strings.NewReader(text), "f"); err == nil && s == nil {
			t.Error("neither tables nor an error")
		}
	})
}

// Ensure that caps are found by names that differ in case and signs, and that one outside what was measured is refused.
func TestCaps(t *testing.T) {
	c, err := ReadCaps(strings.NewReader("dataset,network,batch_size,optimizer,power_limit,"+
		"time_per_epoch,average_power\n"+
		"d,resnet50,1,a,100,20,90\nd,resnet50,1,a,200,10,190\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Of("ResNet-50")) != 2 || len(c.Of("ResNet-50 (batch size 16)")) != 2 || len(c.Of("VGG")) != 0 {
		t.Error("caps of a model are not found by its name")
	}
	tr := &trace.Trace{Jobs: []trace.Job{{}, {}}}
	tr.Jobs[1].Spec.Model = "ResNet-50"
	if c.within(tr, "100W") != nil || c.within(tr, "99W") == nil || c.within(tr, "201W") == nil ||
		c.within(tr, "1.2") != nil {
		t.Error("caps from 100 to 200 W, want others refused")
	}
}
