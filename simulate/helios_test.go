package simulate

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// Ensure that the preset helios gives the averages of HeliosArtifact on two virtual clusters of the Philly trace, in
// seconds, to 0.01 s of what an independent replay of its rules gives. Published, truncated to whole seconds, JCT /
// queue: 7f04ca 133826/1412, 133271/857, 132980/565; 2869ce 70215/21171, 56388/7344, 53128/4071 for FIFO, SJF, SRTF.
// Reference: Hu et al., SC'21, HeliosArtifact, commit bdaae109.
func TestHeliosPreset(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "traces/philly_vc")
	for _, c := range []struct {
		file, cluster, system string
		jobs                  int
		jct, queue            float64
	}{
		{"7f04ca_oct_nov.csv", "32x8", "fifo", 1098, 133826.0346, 1412.2067},
		{"7f04ca_oct_nov.csv", "32x8", "sjf", 1098, 133271.0501, 857.2222},
		{"7f04ca_oct_nov.csv", "32x8", "srtf", 1098, 132979.7349, 565.2240},
		{"2869ce_oct_nov.csv", "16x8", "fifo", 747, 70215.9598, 21171.6113},
		{"2869ce_oct_nov.csv", "16x8", "sjf", 747, 56388.7296, 7344.3829},
		{"2869ce_oct_nov.csv", "16x8", "srtf", 747, 53126.6680, 4071.4378},
	} {
		s := Request{Trace: mustRead(t, filepath.Join(dir, c.file)), Cluster: mustLoad(t, c.cluster), System: c.system,
			Preset: "helios"}
		r := simulate(t, &s).Result
		if r.Jobs != c.jobs || r.Finished != c.jobs {
			t.Errorf("%s %s: %d of %d jobs finished, want %d", c.file, c.system, r.Finished, r.Jobs, c.jobs)
		}
		if math.Abs(r.AvgJCT-c.jct) > 0.01 || math.Abs(r.AvgQueue-c.queue) > 0.01 {
			t.Errorf("%s %s: JCT %.4f, queue %.4f, want %.4f, %.4f", c.file, c.system, r.AvgJCT, r.AvgQueue, c.jct,
				c.queue)
		}
	}
}
