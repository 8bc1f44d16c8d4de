package timeline

import "github.com/trainyard/trainyard/sched"

// Meter knows what the cluster draws and costs: metrics.Bill is one. It is asked before it folds an event.
type Meter interface {
	Watts() float64 // at present; 0 = unknown
	// Spending is what nodes cost per hour at present, and what was paid at once so far, in dollars.
	Spending() (perHour, atOnce float64)
	// EnergyCost is what the power of the present costs from one time to another, in dollars.
	EnergyCost(from, to sched.Time) float64
}

// spending is what a step costs, in dollars.
type spending struct {
	perHour float64 // of nodes
	atOnce  float64 // of nodes, as it starts
	energy  float64 // in all
}

// mostPending is how many steps since the last event about a job are kept apart: what goes on while there is nothing to
// do takes no memory.
const mostPending = 512

// pending are the steps since the last event about a job that was not done.
type pending struct {
	list []step
	paid float64 // at once, up to now
}

// start has what was paid up to now count for nothing; m may be nil.
func (p *pending) start(m Meter) {
	if m != nil {
		_, p.paid = m.Spending()
	}
}

// spend returns what the step from one time to another costs.
func (p *pending) spend(m Meter, from, to sched.Time) spending {
	perHour, paid := m.Spending()
	s := spending{perHour: perHour, atOnce: paid - p.paid, energy: m.EnergyCost(from, to)}
	p.paid = paid
	return s
}

// add adds what was so for a while. Where much is pending, a step that is as the one before makes that longer.
func (p *pending) add(s step) {
	if n := len(p.list); n >= mostPending {
		last := &p.list[n-1]
		same := *last
		same.from, same.to, same.atOnce, same.energy = s.from, s.to, s.atOnce, s.energy
		if same == s && last.to == s.from {
			last.to = s.to
			last.atOnce += s.atOnce
			last.energy += s.energy
			return
		}
	}
	p.list = append(p.list, s)
}
