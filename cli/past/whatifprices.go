package past

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
)

// priceParts is in how many equal parts of the time prices are shown.
const priceParts = 12

// Price is what a GPU of a type was worth to the jobs that lacked one, and what more of them would have given to all.
type Price struct {
	simulate.PriceLine

	// OneMore is what one more node of the type gives; nil where nodes are rented.
	OneMore *OneMore `json:"one_more_node,omitempty"`
}

// OneMore is one node more, by a simulation of its own.
type OneMore struct {
	GPUs  int     `json:"gpus"`              // that it has
	Saves float64 `json:"saves_h_per_gpu_h"` // hours that jobs take less in all, for each hour of one of these GPUs
}

// prices sums up what was noted while row was simulated of c, and simulates c with one more node of each type.
func (h *History) prices(ctx context.Context, c *Candidate, row *Row, noted *simulate.Prices) (list []Price) {
	for t, line := range noted.Lines(h.Cluster.Types, priceParts) {
		list = append(list, Price{line, h.oneMore(ctx, c, row, sched.TypeID(t))})
	}
	return list
}

// oneMore simulates c with one more node of a type, as large as the largest of it; nil where that cannot be.
func (h *History) oneMore(ctx context.Context, c *Candidate, row *Row, t sched.TypeID) *OneMore {
	sim, more := h.request(c), *h.Cluster
	if _, rents := sim.Rents(); rents {
		return nil
	}
	var node *sched.NodeSpec
	for i := range more.Nodes {
		if n := &more.Nodes[i]; n.Type == t && (node == nil || n.GPUs > node.GPUs) {
			node = n
		}
	}
	if node == nil {
		return nil
	}
	added := *node
	added.Name += "-more"
	more.Nodes = append(slices.Clone(more.Nodes), added)
	if sim.Cluster = &more; sim.Known != nil {
		sim.Known = system.EqualScores(more.GPUs())
	}
	sim.Prices = nil
	out, err := sim.Run(ctx)
	if err != nil {
		return nil
	}
	with := h.row(out.PerJob, out.GPUBusy, lastFinish(out.PerJob))
	if with.Jobs != row.Jobs || with.Makespan <= 0 {
		return nil
	}
	saved := (row.MeanJCT - with.MeanJCT) * float64(row.Jobs)
	return &OneMore{added.GPUs, saved / (with.Makespan * float64(added.GPUs))}
}

// lastFinish returns when the last of jobs ended.
func lastFinish(jobs []metrics.Job) sched.Time {
	last := sched.Time(0)
	for i := range jobs {
		last = max(last, jobs[i].Finish)
	}
	return last
}

// priceNotes says what GPUs of each type were worth, and what more of them would have given.
func priceNotes(r *Row) (notes []string) {
	for i := range r.Prices {
		p := &r.Prices[i]
		of, parts := "", make([]string, len(p.Parts))
		if len(r.Prices) > 1 {
			of = " of type " + p.Type
		}
		for k, x := range p.Parts {
			parts[k] = priceText(x)
		}
		note := fmt.Sprintf("%s: the price of a GPU%s is %s on average, at most %s in half of the time; by twelfths "+
			"of the time %s.", r.System, of, priceText(p.Mean), priceText(p.Median), strings.Join(parts, " "))
		if m := p.OneMore; m != nil {
			note += fmt.Sprintf(" One more node of %s saves %s hours of waiting for each hour of one of its GPUs.",
				term.Counted(m.GPUs, "GPU"), priceText(m.Saves))
		}
		notes = append(notes, note)
	}
	return notes
}

// priceText prints a price in two digits.
func priceText(x float64) string {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return strconv.FormatFloat(y, 'f', -1, 64)
}
