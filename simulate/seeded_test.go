package simulate

import (
	"context"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
)

// Ensure that a request with other seeds is the one that names them, leaves the first as it was, and gives another
// simulation exactly where something is drawn.
func TestSeeded(t *testing.T) {
	for name, c := range map[string]struct {
		request Request
		draws   bool
	}{
		"nothing drawn":    {Request{System: "srtf"}, false},
		"failures":         {Request{System: "fifo", Cluster: failing(t, 40*time.Second)}, true},
		"noise in reports": {Request{System: "srtf", Settings: set("report_interval=5", "report_noise=2")}, true},
	} {
		r := c.request
		if r.Trace = traceOf(row{0, 2, 50}, row{1, 1, 90}, row{2, 1, 60}, row{3, 2, 70}); r.Cluster == nil {
			r.Cluster = failing(t, 0)
		}
		if err := r.Check(); err != nil {
			t.Fatal(name, err)
		}
		if r.Draws() != c.draws {
			t.Errorf("%s: draws is %v, want %v", name, r.Draws(), c.draws)
		}
		first := hashOf(t, r)
		differs := false
		for n := range 4 {
			x := r.Seeded(n)
			named := r
			named.Cluster, named.NoiseSeed = failing(t, r.Cluster.Failures.MTBF), uint64(n)
			named.Cluster.Failures.Seed = uint64(n)
			if got, want := hashOf(t, x), hashOf(t, named); got != want {
				t.Errorf("%s: seed %d gives %s, want %s", name, n, got, want)
			} else if n > 0 && got != first {
				differs = true
			}
		}
		if differs != c.draws {
			t.Errorf("%s: seeds make a difference is %v, want %v", name, differs, c.draws)
		}
		if again := hashOf(t, r); again != first {
			t.Errorf("%s: the request itself is another now", name)
		}
	}
}

// Ensure that the seed of interference is raised like the others, and only where there is interference.
func TestSeededInterference(t *testing.T) {
	r := Request{System: "fifo", Cluster: failing(t, 0), Settings: set("interference_noise=1", "interference_seed=7")}
	if r.Draws() || r.Seeded(2).Settings["interference_seed"] != "7" {
		t.Errorf("without interference: draws %v, %v, want no and as given", r.Draws(), r.Seeded(2).Settings)
	}
	if r.Sharing = new(Sharing); !r.Draws() || r.Seeded(2).Settings["interference_seed"] != "9" {
		t.Errorf("draws %v, %v, want it to, and seed 9", r.Draws(), r.Seeded(2).Settings)
	}
	if r.Settings["interference_seed"] != "7" {
		t.Errorf("the settings given are %v now", r.Settings)
	}
}

// failing is a cluster of two nodes that fail so often; 0: they do not.
func failing(t *testing.T, mtbf time.Duration) *cluster.Cluster {
	c := mustLoad(t, "2x2")
	c.Failures = cluster.Failures{MTBF: mtbf, Repair: 5 * time.Second}
	return c
}

func hashOf(t *testing.T, r Request) string {
	t.Helper()
	hash := new(eventlog.Hash)
	r.Sinks = []eventlog.Sink{hash}
	if _, err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return hash.Sum()
}
