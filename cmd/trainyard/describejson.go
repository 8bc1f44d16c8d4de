package main

import (
	"time"

	"github.com/trainyard/trainyard/trace"
)

// describeDoc is the document of trace describe --json. Names are only ever added.
type describeDoc struct {
	Schema      string       `json:"schema"`
	Trace       traceDoc     `json:"trace"`
	Cluster     *clusterDoc  `json:"cluster,omitempty"`
	OfferedLoad *float64     `json:"offered_load,omitempty"` // with a cluster only; 0 = undefined, all jobs at once
	MeanDemand  float64      `json:"mean_demand_gpus"`
	MeanGPUs    float64      `json:"mean_gpus"`
	Widths      []widthDoc   `json:"widths"`
	Duration    quantilesDoc `json:"duration_s"`
	Models      []countDoc   `json:"models"`
	Classes     []countDoc   `json:"classes"`
	Users       []countDoc   `json:"users"`
	Groups      []countDoc   `json:"groups"`
}

type widthDoc struct {
	GPUs      int     `json:"gpus"`
	Jobs      int     `json:"jobs"`
	JobShare  float64 `json:"job_share"`
	TimeShare float64 `json:"gpu_time_share"`
}

type quantilesDoc struct {
	Min  float64 `json:"min"`
	P10  float64 `json:"p10"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

type countDoc struct {
	Name string `json:"name"`
	Jobs int    `json:"jobs"`
}

func (d *description) document() describeDoc {
	doc := describeDoc{Schema: "trainyard.trace/v1", Trace: traceDocOf(d.trace, &d.sum), MeanDemand: d.sum.MeanDemand(),
		MeanGPUs: d.sum.MeanGPUs, Duration: quantilesDocOf(&d.sum.Duration),
		Models: countDocs(d.sum.Models), Classes: countDocs(d.sum.Classes), Users: countDocs(d.sum.Users), Groups: countDocs(d.sum.Groups)}
	for _, w := range d.sum.Widths {
		doc.Widths = append(doc.Widths, widthDoc(w))
	}
	if d.cluster != nil {
		c := clusterDocOf(d.cluster)
		load := d.sum.OfferedLoad(c.GPUs)
		doc.Cluster, doc.OfferedLoad = &c, &load
	}
	return doc
}

func quantilesDocOf(q *trace.Quantiles) quantilesDoc {
	s := time.Duration.Seconds
	return quantilesDoc{s(q.Min), s(q.P10), s(q.P50), s(q.P90), s(q.P95), s(q.P99), s(q.Max), s(q.Mean)}
}

func countDocs(counts []trace.Count) []countDoc {
	docs := make([]countDoc, len(counts))
	for i, c := range counts {
		docs[i] = countDoc(c)
	}
	return docs
}
