package record

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that GPUs are the same once they were written as spans, in whatever order, and that what is no GPU stays.
func TestSpans(t *testing.T) {
	for list, want := range map[string]string{
		"":                                  "",
		"a/0":                               "a/0",
		"a/0 a/1 a/2 a/3":                   "a/0-3",
		"a/0 a/2 a/3 a/6":                   "a/0,2-3,6",
		"a/6 a/7 b/0 b/1 a/0":               "a/6-7 b/0-1 a/0",
		"a/3 a/2 a/1":                       "a/3,2,1",
		"a/9 a/10 a/11":                     "a/9-11",
		"a /3 a/x a/1 a/-1 a/2":             "a /3 a/x a/1 a/-1 a/2",
		"a/01 a/2":                          "a/01 a/2",
		"a/0 a/1 a/3 a/4 a/5 b/1 b/2 b/102": "a/0-1,3-5 b/1-2,102",
	} {
		spans := spansOf(strings.Fields(list))
		if got := strings.Join(spans, " "); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
		if back, err := gpusOf(spans); err != nil || strings.Join(back, " ") != list {
			t.Errorf("%s is read as %v, %v", want, back, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var list []string
		for range r.IntN(40) {
			list = append(list, fmt.Sprintf("n%d/%d", r.IntN(2), r.IntN(12)))
		}
		if back, err := gpusOf(spansOf(list)); err != nil || !slices.Equal(back, list) {
			t.Fatalf("%v is read as %v, %v", list, back, err)
		}
	}
	for _, bad := range []string{"a/0-16384", "a/0-9223372036854775806", "a/0-9999,0-9999"} {
		if list, err := gpusOf([]string{bad}); err == nil {
			t.Errorf("%s: %d GPUs are read", bad, len(list))
		}
	}
	for _, none := range []string{"a", "a/", "a/3-1", "a/1-", "a/1-1-1", "a/01", "a/-", "a/1,,2",
		"a/99999999999999999999"} {
		if list, err := gpusOf([]string{none}); err != nil || !slices.Equal(list, []string{none}) {
			t.Errorf("%s: %v, %v", none, list, err)
		}
	}
}

// wide returns a View with a job on so many GPUs of nodes of eight, all up.
func wide(gpus int) *sched.View {
	v := &sched.View{Jobs: make([]sched.Job, 1)}
	for i := range gpus / 8 {
		devices := make([]string, 8)
		for k := range devices {
			devices[k] = fmt.Sprintf("GPU-%08x-4f0e-4c0e-9f39-%012d", i, k)
		}
		v.Nodes = append(v.Nodes, sched.Node{State: sched.NodeUp, First: sched.GPUID(8 * i), Spec: sched.NodeSpec{
			Name: fmt.Sprintf("gpu-pool-a-node-%04d", i), GPUs: 8, Devices: devices}})
		for k := range 8 {
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(i)})
			v.Jobs[0].GPUs = append(v.Jobs[0].GPUs, sched.GPUID(8*i+k))
		}
	}
	j := &v.Jobs[0]
	j.Spec = &sched.JobSpec{Name: "wide", User: "lab", Task: "0b9d7b1e-4f0e-4c0e-9f39-2f6a3c1d0e0a",
		GPUs: sched.Rigid(gpus)}
	j.State, j.Attempt, j.Attempts, j.Target = sched.Active, sched.Running, 1, j.GPUs
	return v
}

// Ensure that the status of a job on 4,096 GPUs of 512 nodes has at most 64 KiB, that all of them are in its record and
// can be read by the schema before, and that jobs on 64 GPUs say the name of each.
func TestWideStatus(t *testing.T) {
	v := wide(4096)
	rec := Of(v, 0, 1)
	st := Extract(v, 0, v1alpha1.Pinned, nil)
	st.Record = rec.String()
	text, err := json.Marshal(st)
	if err != nil || len(text) > 64<<10 {
		t.Errorf("%d bytes, want at most 64 KiB: %v", len(text), err)
	}
	t.Logf("a status of 4,096 GPUs on 512 nodes has %d bytes", len(text))
	for schema := OldJobSchema; schema <= JobSchema; schema++ {
		back, err := Read(rec.In(schema))
		if err != nil || len(back.GPUs) != 4096 || !slices.Equal(back.Target, rec.Target) || back.GPUs[9] !=
			"gpu-pool-a-node-0001/1" {
			t.Errorf("schema %d: %d GPUs, %v", schema, len(back.GPUs), err)
		}
	}
	if a := st.Allocation; len(a) != 512 || a[511].Node != "gpu-pool-a-node-0511" || a[511].Device != "0-7" ||
		a[511].UUID != "" {
		t.Errorf("%d entries, the last is %+v", len(a), a[len(a)-1])
	}
	if a := Extract(wide(64), 0, v1alpha1.Pinned, nil).Allocation; len(a) != 64 || a[63].Device != "7" ||
		!strings.HasPrefix(a[63].UUID, "GPU-") {
		t.Errorf("%d entries, the last is %+v", len(a), a[len(a)-1])
	}
}
