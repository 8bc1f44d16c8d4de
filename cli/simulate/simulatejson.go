package simulate

import (
	"slices"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// simulateDoc is the document of simulate --json. Names are only ever added.
type simulateDoc struct {
	Schema  string          `json:"schema"`
	Trace   term.TraceDoc   `json:"trace"`
	Cluster term.ClusterDoc `json:"cluster"`
	// OfferedLoad is the work submitted per second over what the GPUs can do; 0 where all jobs are submitted at once.
	OfferedLoad float64                      `json:"offered_load"`
	Preset      string                       `json:"preset"`   // "" = none
	Round       float64                      `json:"round_s"`  // 0 = the systems' own
	Settings    map[string]map[string]string `json:"settings"` // as given, by system
	Results     []resultDoc                  `json:"results"`
	Seeds       []seedsDoc                   `json:"seeds,omitempty"`  // with --seeds: results over all, by system
	Failed      []failedDoc                  `json:"failed,omitempty"` // systems that have no result
}

// document returns what --json prints.
func (c *comparison) document() simulateDoc {
	doc := simulateDoc{Schema: "trainyard.simulate/v1", Trace: term.TraceDocOf(c.shared.Trace, &c.summary),
		Cluster:     term.ClusterDocOf(c.shared.Cluster),
		OfferedLoad: c.summary.OfferedLoad(c.shared.Cluster.MostGPUs()), Preset: c.shared.Preset,
		Round:    c.shared.Round.Seconds(),
		Settings: make(map[string]map[string]string)}
	for i := range c.runs {
		r := &c.runs[i]
		doc.Settings[r.request.System] = r.request.Settings
		result := resultDocOf(r)
		if c.seeds > 0 {
			result.Seed = &r.seed
		}
		if first := c.runs[0].outcome; i > 0 && first.Result.Finished == r.outcome.Result.Finished {
			result.Paired = metrics.PairJobs(r.outcome.PerJob, first.PerJob)
		}
		doc.Results = append(doc.Results, result)
	}
	doc.Seeds, doc.Failed = c.seedsDocs(), c.failedDocs()
	return doc
}

// resultDoc is a result in which what is unknown is null.
type resultDoc struct {
	metrics.Result
	AvgActiveNodes *float64 `json:"avg_active_nodes"` // unknown of a replica, which knows no nodes
	// LogHash is the hash of the event log: equal runs have equal hashes. A replica has no log and none.
	LogHash string `json:"log_hash"`
	// Seed is that of the simulation, with --seeds alone.
	Seed   *uint64 `json:"seed,omitempty"`
	Engine string  `json:"engine"` // what computed it: trainyard, or replica:NAME
	// Knows is what the system knew by an oracle, which no one knows of real jobs: sizes, curves. A replica has none.
	Knows []string `json:"knows"`
	// Paired is how far its mean JCT is from that of the first system, relative to it, with a 95 % interval by a
	// bootstrap over blocks of arrivals; nothing of the first, of fewer than 200 jobs, and where other jobs finished.
	Paired *metrics.Paired `json:"paired,omitempty"`
}

func resultDocOf(r *systemRun) resultDoc {
	o := &r.outcome.Result
	doc := resultDoc{Result: *o, Engine: r.outcome.Engine, Knows: append([]string{}, r.outcome.Knows...)}
	if !r.replica() {
		doc.AvgActiveNodes, doc.LogHash = &o.AvgActiveNodes, r.hash.Sum()
	}
	return doc
}

// powered reports whether a node of the cluster has power.
func (c *comparison) powered() bool {
	return slices.ContainsFunc(c.shared.Cluster.Nodes,
		func(n sched.NodeSpec) bool { return n.IdleW > 0 || n.BusyGPUW > 0 || n.SleepW > 0 })
}

// priced reports whether a node of the cluster, or one that may be rented, has a price.
func (c *comparison) priced() bool {
	return slices.ContainsFunc(c.shared.Cluster.Nodes, func(n sched.NodeSpec) bool { return n.DollarsHr > 0 }) ||
		slices.ContainsFunc(c.shared.Cluster.Pools, func(p cluster.Pool) bool { return p.Price > 0 })
}
