package boa

import (
	"math"
	"math/bits"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// menu is what jobs may choose from and what that costs them: it turns applications into classes of the price's.
type menu struct {
	curves   speedup.Source
	perNode  int
	restarts func(model string) time.Duration
	boot     time.Duration // that a change of width waits for
	step     float64       // of priority: the factor on what a job's delay is worth; 0: none
	// to choose from, ascending: the Configs of all classes; nil: not known yet
	widths  []int
	classes map[*speedup.Phase]*price.Class // by chain, for a price
}

func newMenu(p Params) menu {
	m := menu{curves: p.Curves, perNode: p.PerNode, restarts: p.Restart, boot: p.Boot, step: p.Weight,
		classes: make(map[*speedup.Phase]*price.Class)}
	if p.asPublished {
		m.boot = 0 // the authors count the restart alone
	}
	return m
}

// weight returns what a unit of delay of a job is worth, 1 at priority 0.
func (m *menu) weight(spec *sched.JobSpec) float64 {
	if m.step == 0 || spec.Priority == 0 {
		return 1
	}
	return math.Pow(m.step, float64(min(max(spec.Priority, -mostSteps), mostSteps)))
}

// mostSteps bounds the steps of priority that count.
const mostSteps = 20

// restart returns what a change of width costs jobs of a model.
func (m *menu) restart(model string) time.Duration { return m.restarts(model) + m.boot }

// priced returns the class of a job with these curves; its rate plays no role.
func (m *menu) priced(model string, chain speedup.Chain) *price.Class {
	c, ok := m.classes[&chain[0]]
	if !ok || c.Restart != m.restart(model).Seconds() { // what a restart costs may have been learned since
		if len(m.classes) >= mostClasses {
			clear(m.classes)
		}
		class := m.classOf(speedup.Class{Model: model, Rate: 1, Chain: chain})
		c = &class
		m.classes[&chain[0]] = c
	}
	return c
}

// mostClasses bounds what is kept of curves that have changed since.
const mostClasses = 64

// offerFor fills in the widths offered, which are the same for all chains.
func (m *menu) offerFor(chain speedup.Chain) {
	if m.widths == nil && chain != nil {
		m.widths = m.offer(len(chain[0].Speed) - 1)
	}
}

// offer returns the widths up to most to choose from: beyond a node whole nodes only, as those that the authors
// measured on nodes of 4: 1, 2, 4, 8, 12 and 16. Where curves are learned those on more than one node are few, 8, 12,
// 16, 24, 32, 48, ...: every width that looks good has to be tried before it is known. Ours.
func (m *menu) offer(most int) []int {
	_, learned := m.curves.(sched.Observer)
	perNode := max(m.perNode, 1)
	var list []int
	for k := 1; k <= most; k++ {
		nodes := k / perNode
		whole := k <= perNode || k%perNode == 0
		few := k <= perNode || bits.OnesCount(uint(nodes)) <= 2 && (nodes&1 == 0 || nodes <= 3)
		if whole && (few || !learned) {
			list = append(list, k)
		}
	}
	return list
}

// classOf turns an application into a class of the price's, whose Configs are the widths offered. A change of width
// takes nodes that boot, waited and paid for, as well as a restart.
func (m *menu) classOf(c speedup.Class) price.Class {
	out := price.Class{Name: c.Model, Rate: c.Rate, Restart: m.restart(c.Model).Seconds()}
	m.offerFor(c.Chain)
	for _, k := range m.widths {
		out.Configs = append(out.Configs, price.Config{GPUs: k})
	}
	for _, phase := range c.Chain {
		times := make([]float64, len(m.widths))
		for i, k := range m.widths {
			times[i] = phase.Size / phase.Speed[k] // +Inf where it cannot be run
		}
		out.Times = append(out.Times, times)
	}
	return out
}
