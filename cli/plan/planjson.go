package plan

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/trainyard/trainyard/simulate"
)

// planDoc is the document of plan --json. Names are only ever added.
type planDoc struct {
	Schema   string        `json:"schema"`
	Workload string        `json:"workload"`
	Method   string        `json:"method"`
	Smooth   bool          `json:"continuous"`
	Budget   float64       `json:"budget"`    // GPUs on average; money per hour where GPU types have prices
	AvgJCT   float64       `json:"avg_jct_h"` // over all classes
	Weighted *float64      `json:"avg_weighted_jct_h,omitempty"`
	Usage    float64       `json:"usage_gpus"`              // in the unit of the budget
	Price    *float64      `json:"price"`                   // jobs waiting per GPU; null = the method knows none
	Saves    *float64      `json:"saves_s_per_job_per_gpu"` // what one more of the budget saves
	Least    float64       `json:"min_budget"`
	Widths   []planWidth   `json:"widths"`
	Frontier []planCorner  `json:"frontier"`
	Reserve  *planReserve  `json:"reserve,omitempty"`
	Verified *planVerified `json:"verified,omitempty"`
}

// planVerified is what came of the plan in simulation.
type planVerified struct {
	Seeds  int               `json:"seeds"`
	Jobs   int               `json:"jobs"`
	Hours  float64           `json:"hours"`
	AvgJCT simulate.Interval `json:"avg_jct_h"`
	GPUs   simulate.Interval `json:"gpus"`
}

type planWidth struct {
	Class string  `json:"class"`
	Epoch int     `json:"epoch"` // from 1
	GPU   string  `json:"gpu_type,omitempty"`
	GPUs  float64 `json:"gpus"`
	Share float64 `json:"share"` // of the jobs of the class
}

type planCorner struct {
	Budget   float64  `json:"budget"`
	AvgJCT   float64  `json:"avg_jct_h"`
	Weighted *float64 `json:"avg_weighted_jct_h,omitempty"`
}

type planReserve struct {
	Reserved int     `json:"gpus"`
	Rented   float64 `json:"avg_rented"`
	Idle     float64 `json:"avg_idle"`
	Above    float64 `json:"p_above"`
	Cost     float64 `json:"cost_per_h"`
	Rent     float64 `json:"cost_all_rented_per_h"`
}

func (p *planned) document() planDoc {
	best := p.best
	doc := planDoc{Schema: "trainyard.plan/v1", Workload: p.workload.path, Method: p.method, Smooth: p.continuous,
		Budget: p.budget,
		AvgJCT: best.jct, Weighted: p.weighted(best), Usage: best.usage, Least: p.least, Widths: []planWidth{},
		Frontier: []planCorner{}}
	if best.priced {
		saves := p.saves()
		doc.Price, doc.Saves = &best.price, &saves
	}
	for _, r := range best.rows {
		doc.Widths = append(doc.Widths, planWidth{r.class, r.epoch, r.gpu, r.gpus, r.share})
	}
	for _, o := range p.frontier {
		doc.Frontier = append(doc.Frontier, planCorner{o.budget, o.jct, p.weighted(o)})
	}
	if r := p.split; r != nil {
		doc.Reserve = &planReserve{r.split.Reserved, r.split.Rented, r.split.Idle, r.split.Above, r.cost, r.rent}
	}
	if v := p.verified; v != nil {
		doc.Verified = &planVerified{v.Seeds, v.Jobs, v.Hours, v.JCT, v.GPUs}
	}
	return doc
}

// reportedPlan is the document as a report has it: without paths of folders, and with the unit of budgets.
type reportedPlan struct {
	planDoc
	Unit string `json:"unit"`
}

// forReport returns the document as a report has it; an anonymous one numbers classes and kinds of GPU.
func forReport(doc planDoc, unit string, anonymous bool) reportedPlan {
	doc.Workload = filepath.Base(doc.Workload)
	if anonymous {
		doc.Workload, doc.Widths = "", slices.Clone(doc.Widths)
		classes, kinds := map[string]string{"": ""}, map[string]string{"": ""}
		for i := range doc.Widths {
			w := &doc.Widths[i]
			w.Class = numbered(classes, "class", w.Class)
			w.GPU = numbered(kinds, "GPU type", w.GPU)
		}
	}
	return reportedPlan{doc, unit}
}

// numbered returns the number that a name has, or is given, among those known; "" has none.
func numbered(known map[string]string, word, name string) string {
	if _, ok := known[name]; !ok {
		known[name] = fmt.Sprint(word, " ", len(known))
	}
	return known[name]
}

// weighted returns the weighted mean, nil where all jobs are worth the same.
func (p *planned) weighted(o *outcome) *float64 {
	if !p.workload.weighted() {
		return nil
	}
	return &o.value
}

// saves returns the seconds that one more of the budget saves per job.
func (p *planned) saves() float64 { return 3600 * p.best.price / p.workload.rate() }
