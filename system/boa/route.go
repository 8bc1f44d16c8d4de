package boa

import (
	"slices"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// Want returns the width of job j in the phase that it is in. A job of which nothing is known runs as it asks.
func (w *widths) Want(v *sched.View, j sched.JobID) (gpus int32, c sched.Config) {
	spec := v.Jobs[j].Spec
	chain, phase, done := w.p.Curves.Chain(v, j)
	gpus = spec.GPUs.Want
	if path, from := w.route(v, j, chain, phase, done); path != nil {
		gpus = int32(path[phase-from]) + 1 // Configs are the widths from 1
	}
	gpus = min(max(gpus, spec.GPUs.Min), spec.GPUs.Max)
	if chain == nil {
		return gpus, sched.Config{}
	}
	return gpus, configOf(&chain[phase], gpus)
}

// Narrower returns how job j runs on fewer GPUs than it wants.
func (w *widths) Narrower(v *sched.View, j sched.JobID, gpus int32) (c sched.Config, ok bool) {
	chain, phase, _ := w.p.Curves.Chain(v, j)
	if chain == nil {
		return sched.Config{}, v.Jobs[j].Spec.GPUs.Has(int(gpus))
	}
	p := &chain[phase]
	return configOf(p, gpus), int(gpus) < len(p.Speed) && p.Speed[gpus] > 0
}

// configOf returns the batch size and accumulation that are best on so many GPUs.
func configOf(p *speedup.Phase, gpus int32) (c sched.Config) {
	if int(gpus) < len(p.Batch) {
		c.Batch = p.Batch[gpus]
	}
	if int(gpus) < len(p.Accum) && p.Accum[gpus] > 1 {
		c.Accum = p.Accum[gpus]
	}
	return c
}

// route returns the path of job j through its phases, and the phase that it begins with; nil if there is none. A job is
// given its path once, and again whenever plan or price change.
func (w *widths) route(v *sched.View, j sched.JobID, chain speedup.Chain, phase int, done float64) (path price.Path, from int) {
	if chain == nil || w.Plan == nil && w.control == nil {
		return nil, 0
	}
	for int(j) >= len(w.jobs) {
		w.jobs = append(w.jobs, route{})
	}
	r := &w.jobs[j]
	if r.version != w.Version || phase < int(r.from) || phase >= int(r.from)+len(r.path) {
		if !w.give(v, j, r, chain, phase, done) {
			return nil, 0
		}
		r.version = w.Version
	}
	return r.path, int(r.from)
}

// give finds the path of job j.
func (w *widths) give(v *sched.View, j sched.JobID, r *route, chain speedup.Chain, phase int, done float64) bool {
	job := &v.Jobs[j]
	at := price.State{Phase: phase, Done: done, Config: len(job.Target) - 1}
	if w.control != nil {
		c := w.priced(job.Spec.Model, chain)
		r.path, r.from = c.Best(w.control.Price(), at, r.path), int32(phase)
		return true
	}
	i := slices.IndexFunc(w.Classes, func(c price.Class) bool { return c.Name == job.Spec.Model })
	if i < 0 || len(w.Classes[i].Times) != len(chain) {
		return false
	}
	mix := &w.Plan.Classes[i]
	if first := r.version == 0 && job.Attempts == 0; first || w.p.Glue {
		whole := mix.Path
		if first && mix.Other != nil {
			var other bool
			if w.Credit[i], other = price.Diffuse(w.Credit[i], mix.Share); other {
				whole = mix.Other
			}
		}
		r.path, r.from = append(r.path[:0], whole...), 0
		return true
	}
	r.path, r.from = w.Classes[i].Best(w.Plan.Price, at, r.path), int32(phase)
	return true
}

// priced returns the class of a job with these curves; its rate plays no role.
func (w *widths) priced(model string, chain speedup.Chain) *price.Class {
	c, ok := w.classes[&chain[0]]
	if !ok {
		if len(w.classes) >= mostClasses {
			clear(w.classes)
		}
		class := classOf(speedup.Class{Model: model, Rate: 1, Chain: chain}, w.p.Restart(model))
		c = &class
		w.classes[&chain[0]] = c
	}
	return c
}

// mostClasses bounds what is kept of curves that have changed since.
const mostClasses = 64
