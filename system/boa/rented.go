package boa

import (
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/provision"
)

// Renting is what another system takes of BOA: the price of GPU time that keeps spending at what was agreed, the widths
// that are best at it, and the nodes that they need.
type Renting struct {
	granting
	rent *provision.Rent
	jobs *provision.Present
}

var _ allocate.Renting = (*Renting)(nil)

// NewRenting steers the price by what is spent, and knows neither rates nor sizes.
func NewRenting(p Params) (*Renting, error) {
	p.Priced = true
	w, err := newWidths(p)
	if err != nil {
		return nil, err
	}
	return w.renting(), nil
}

func (w *widths) renting() *Renting {
	rent, wanted := w.p.Rent, &provision.Wanted{Wants: w}
	rent.Demand, rent.Stopped = wanted, w.spend.stopped
	if !w.p.asPublished {
		rent.Move = w.toMove
	}
	return &Renting{granting{allocate.ByWidth{Wants: w, Soon: w.soon}, w}, &rent, &wanted.Present}
}

// Parts are those that learn, and rent.
func (r *Renting) Parts() pipeline.Parts {
	return pipeline.Parts{Learn: []sched.Observer{r.w}, Provision: []sched.Provisioner{&clock{w: r.w, jobs: r.jobs},
		r.rent}}
}

// Price returns what GPU time is worth now.
func (r *Renting) Price() float64 { return r.w.price() }

// Short reports whether jobs want more GPUs at the price than can ever be rented. While nodes boot it is not known.
func (r *Renting) Short(v *sched.View) bool {
	if r.w.spend.stopped() {
		return false
	}
	most, nodes, size := 0, 0, 0
	for i := range v.Pools {
		p := &v.Pools[i]
		if p.Ordered > p.Nodes {
			return false
		}
		nodes, size = nodes+int(p.Spec.Max), max(size, p.Spec.GPUs)
		most += int(p.Spec.Max) * p.Spec.GPUs
	}
	if limit := int(r.rent.Most); limit > 0 && limit < nodes {
		most = min(most, limit*size)
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; v.PoolOf(n) == nil && n.Open() {
			most += n.Spec.GPUs
		}
	}
	for _, j := range r.jobs.Jobs(v) {
		if v.Jobs[j].Eligible() {
			gpus, _ := r.w.Want(v, j)
			most -= int(gpus)
		}
	}
	return most < 0
}
