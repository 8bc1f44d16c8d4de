package term

import (
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/trace"
)

// TraceDoc describes a trace.
type TraceDoc struct {
	Path     string   `json:"path"`
	Format   string   `json:"format"`
	Jobs     int      `json:"jobs"`
	Span     float64  `json:"span_s"` // first to last submission
	GPUHours float64  `json:"gpu_hours"`
	Zone     string   `json:"zone"`
	Warnings []string `json:"warnings"`
}

// TraceDocOf describes a trace with the figures of its summary.
func TraceDocOf(t *trace.Trace, s *trace.Summary) TraceDoc {
	return TraceDoc{Path: t.Path, Format: t.Format, Jobs: s.Jobs, Span: s.Span.Seconds(),
		GPUHours: float64(s.GPUTime) / 3600,
		Zone:     t.Zone, Warnings: append([]string{}, t.Warnings...)}
}

// ClusterDoc describes a cluster.
type ClusterDoc struct {
	Name   string  `json:"name"`
	Nodes  int     `json:"nodes"`
	GPUs   int     `json:"gpus"`
	MTBF   float64 `json:"mtbf_s"`   // of a node; 0 = nodes never fail
	Seed   uint64  `json:"seed"`     // of failures
	Repair float64 `json:"repair_s"` // how long a node stays down
}

// ClusterDocOf describes a cluster.
func ClusterDocOf(c *cluster.Cluster) ClusterDoc {
	return ClusterDoc{Name: c.Name, Nodes: len(c.Nodes), GPUs: c.GPUs(), MTBF: c.Failures.MTBF.Seconds(),
		Seed:   c.Failures.Seed,
		Repair: c.Failures.Repair.Seconds()}
}
