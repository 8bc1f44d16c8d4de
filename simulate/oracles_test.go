package simulate

import (
	"slices"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that an outcome says which oracles the system asked, and no others.
func TestKnows(t *testing.T) {
	c, err := cluster.Load("2x4")
	if err != nil {
		t.Fatal(err)
	}
	whole := trace.Testbed(1)
	jobs := &trace.Trace{Path: whole.Path, Jobs: slices.Clone(whole.Jobs[:30])}
	for _, x := range []struct {
		system   string
		settings map[string]string
		want     []string
	}{
		{"fifo", nil, nil},
		{"tiresias-las", nil, nil},
		{"srtf", nil, []string{"sizes"}},
		{"fifo-easy", nil, []string{"sizes"}},
		{"packed", map[string]string{"order": "tiresias-las"}, nil},
		{"packed", map[string]string{"order": "srtf"}, []string{"sizes"}},
		{"elastic", nil, nil},
		{"worth", nil, nil},
		{"worth", map[string]string{"sizes": "stated"}, nil},
		{"worth", map[string]string{"sizes": "oracle"}, []string{"sizes"}},
	} {
		r := Request{Trace: jobs, Cluster: c, System: x.system, Settings: x.settings}
		out, err := r.Run(t.Context())
		if err != nil {
			t.Errorf("%s %v: %v", x.system, x.settings, err)
			continue
		}
		if !slices.Equal(out.Knows, x.want) {
			t.Errorf("%s %v knows %v, want %v", x.system, x.settings, out.Knows, x.want)
		}
	}
}
