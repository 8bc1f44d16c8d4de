package manager_test

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job takes the GPUs that it asks for by a part of their name and by their memory, waits for these though
// others are free, and is refused with what there is where none will do; and that an edit is held to the same.
func TestGPUTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "fifo-skip", 2, "jobs: [{command: [x]}]")
	r.options.Devices = device.NewFake(device.Device{Name: "A", Type: "NVIDIA H100 80GB", MemoryGB: 79.6},
		device.Device{Name: "B", Type: "NVIDIA A100-SXM4-40GB", MemoryGB: 40}, device.Device{Name: "C",
			Type: "NVIDIA A100-SXM4-40GB", MemoryGB: 39.5})
	r.options.Unit = "GPU"
	s := r.serve()
	on := func(id sched.JobID) (names string) {
		if err := s.m.Look(t.Context(), func(v *sched.View) {
			for _, g := range v.Job(id).GPUs {
				names += v.Nodes[v.GPUs[g].Node].Spec.Devices[g-v.Nodes[v.GPUs[g].Node].First]
			}
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	const there = "there are 1 x NVIDIA H100 80GB (79.6 GB), 2 x NVIDIA A100-SXM4-40GB (39.5 GB): " +
		"it would never start"
	for keys, want := range map[string]string{
		"gpu_type: v100":                      "needs 1 GPU of gpu_type v100, " + there,
		"gpu_type: h100, gpus: 2":             "needs 2 GPUs of gpu_type h100, " + there,
		"gpu_memory_gb: 81, gpu_type: [h100]": "", // sold as 80 GB
		"gpu_memory_gb: 96":                   "needs 1 GPU with gpu_memory_gb 96, " + there,
		"gpu_memory_gb: 80, gpu_type: a100":   "needs 1 GPU of gpu_type a100 with gpu_memory_gb 80, " + there,
	} {
		_, _, err := s.m.Plan(t.Context(), s.list("jobs: [{command: [x], "+keys+"}]"))
		if got := errorText(err); !strings.Contains(got, want) || got != "" && want == "" {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
	for i, c := range []struct{ keys, on string }{
		{"gpu_memory_gb: 80", "A"}, {"gpu_type: A100_SXM4, gpus: 2", "BC"},
	} {
		id := s.submit("jobs: [{command: WAITING, " + c.keys + "}]")
		s.until(id, "running", runs)
		if got := on(id); int(id) != i || got != c.on {
			t.Errorf("%s: job %d on %q, want %d on %q", c.keys, id, got, i, c.on)
		}
	}
	site, admin := manager.NewSite(s.m, nil), api.Who{Role: api.Admin}
	edit := func(id sched.JobID, keys string) string {
		_, _, err := site.Edit(t.Context(), admin, id, &api.Edit{Keys: keys})
		return errorText(err)
	}
	if got := edit(0, "{gpu_type: a100}"); !strings.Contains(got, "gpu_type a100 with gpu_memory_gb 80, "+there) {
		t.Error(got)
	}
	if got := edit(0, "{gpu_memory_gb: 40, gpu_type: a100}"); !strings.Contains(got, "job 0 is on GPUs of type "+
		"NVIDIA H100 80GB, want these too") {
		t.Error(got)
	}
	waits := s.submit("jobs: [{command: WAITING, gpu_type: [h100, v100]}]")
	types := func() (set sched.TypeSet) {
		if err := s.m.Look(t.Context(), func(v *sched.View) { set = v.Job(waits).Spec.Types }); err != nil {
			t.Fatal(err)
		}
		return set
	}
	if got, want := types(), sched.TypeSet(0).With(0); got != want {
		t.Errorf("types %b, want %b", got, want)
	}
	if got := edit(waits, "{gpu_type: any, model: net}"); got != "" || types() != 0 {
		t.Errorf("types %b, %s, want any", types(), got)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
