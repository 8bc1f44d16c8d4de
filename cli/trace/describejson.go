package trace

import (
	"time"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/trace"
)

// describeDoc is the document of trace describe --json. Names are only ever added.
type describeDoc struct {
	Schema      string           `json:"schema"`
	Trace       term.TraceDoc    `json:"trace"`
	Cluster     *term.ClusterDoc `json:"cluster,omitempty"`
	OfferedLoad *float64         `json:"offered_load,omitempty"` // with a cluster only; 0 = undefined: all jobs at once, or without durations
	MeanDemand  float64          `json:"mean_demand_gpus"`
	MeanGPUs    float64          `json:"mean_gpus"`
	Widths      []widthDoc       `json:"widths"`
	Duration    quantilesDoc     `json:"duration_s"`
	Models      []countDoc       `json:"models"`
	Classes     []countDoc       `json:"classes"`
	Users       []countDoc       `json:"users"`
	Groups      []countDoc       `json:"groups"`

	Source   string      `json:"source"`   // "" = not known
	Origin   string      `json:"origin"`   // what the clock showed at time 0; "" = not known
	LeftOut  []countDoc  `json:"left_out"` // rows, by reason
	Doubts   []string    `json:"doubts"`
	States   []shareDoc  `json:"states"`
	Types    []shareDoc  `json:"gpu_types"`
	Loads    []typeLoad  `json:"offered_load_by_type,omitempty"` // with a cluster only
	Partial  int         `json:"partial_gpu_jobs"`
	AskedFor float64     `json:"gpu_hours_asked"` // parts of GPUs counted as parts
	Arrivals arrivalsDoc `json:"arrivals"`
}

type shareDoc struct {
	Name      string  `json:"name"`
	Jobs      int     `json:"jobs"`
	JobShare  float64 `json:"job_share"`
	GPUHours  float64 `json:"gpu_hours"`
	TimeShare float64 `json:"gpu_time_share"`
}

type arrivalsDoc struct {
	Clock    bool    `json:"clock"`    // hours and weekdays are those of the recorded clock
	Hours    [24]int `json:"hours"`    // jobs by hour of the day; counted from time 0 without clock
	Weekdays [7]int  `json:"weekdays"` // jobs by weekday, Monday first; zeros without clock
	Course   [60]int `json:"course"`   // jobs by sixtieth of the span
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
	doc := describeDoc{Schema: "trainyard.trace/v1", Trace: term.TraceDocOf(d.trace, &d.sum),
		MeanDemand: d.sum.MeanDemand(),
		MeanGPUs:   d.sum.MeanGPUs, Duration: quantilesDocOf(&d.sum.Duration),
		Models: countDocs(d.sum.Models), Classes: countDocs(d.sum.Classes), Users: countDocs(d.sum.Users),
		Groups: countDocs(d.sum.Groups)}
	doc.Source, doc.LeftOut, doc.Doubts = d.trace.Source, countDocs(d.trace.LeftOut), append([]string{}, d.doubts...)
	if t := d.trace.Origin; !t.IsZero() {
		doc.Origin = t.Format("2006-01-02T15:04:05")
	}
	doc.States, doc.Types = shareDocs(d.sum.States), shareDocs(d.sum.Types)
	doc.Partial, doc.AskedFor = d.sum.Partial, float64(d.sum.AskedFor)/3600
	doc.Arrivals = arrivalsDoc(d.sum.Arrivals)
	for _, w := range d.sum.Widths {
		doc.Widths = append(doc.Widths, widthDoc(w))
	}
	if d.cluster != nil {
		c := term.ClusterDocOf(d.cluster)
		load := d.sum.OfferedLoad(c.GPUs)
		doc.Cluster, doc.OfferedLoad, doc.Loads = &c, &load, d.loads()
	}
	return doc
}

func quantilesDocOf(q *trace.Quantiles) quantilesDoc {
	s := time.Duration.Seconds
	return quantilesDoc{s(q.Min), s(q.P10), s(q.P50), s(q.P90), s(q.P95), s(q.P99), s(q.Max), s(q.Mean)}
}

func shareDocs(list []trace.Share) []shareDoc {
	docs := make([]shareDoc, len(list))
	for i, s := range list {
		docs[i] = shareDoc{s.Name, s.Jobs, s.JobShare, float64(s.GPUTime) / 3600, s.TimeShare}
	}
	return docs
}

func countDocs(counts []trace.Count) []countDoc {
	docs := make([]countDoc, len(counts))
	for i, c := range counts {
		docs[i] = countDoc(c)
	}
	return docs
}
