package pipeline

import (
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/sched"
)

// Brief says why jobs do not run as far as a View and widths show, for lists of many: the cost of a job does not grow
// with the number of others that wait. It holds while the View stays as it is.
type Brief struct {
	// Held says why a job is paused though its user does not want that; "": it is not. nil: no job is.
	Held func(sched.JobID) string

	v        *sched.View
	p        *Pipeline // nil = the Decider is none
	stocks   map[sched.TypeSet][]explain.Stock
	unusable map[sched.TypeID][]sched.GPUID
	open     map[sched.JobID][]sched.JobID // tasks of an array, by its first one
	ledger   lazyLedger
}

// NewBrief returns the Brief of v, of which dec decided last; it may be nil.
func NewBrief(v *sched.View, dec sched.Decider) *Brief {
	return &Brief{v: v, p: pipelineOf(dec), stocks: make(map[sched.TypeSet][]explain.Stock),
		unusable: make(map[sched.TypeID][]sched.GPUID), open: make(map[sched.JobID][]sched.JobID)}
}

// pipelineOf returns the Pipeline that decides about jobs in dec; nil if there is none, or it has not decided yet.
func pipelineOf(dec sched.Decider) *Pipeline {
	if c, ok := dec.(*composed); ok {
		dec = c.Decider
	}
	if p, ok := dec.(*Pipeline); ok && p.primed {
		return p
	}
	return nil
}

// Why is the function Why of a job without those ahead of it and those who hold GPUs. Its code is explain.WaitSystem
// where enough GPUs are free, whatever the system has against it.
func (b *Brief) Why(id sched.JobID) explain.Waiting {
	w, free := explain.OfView(b.v, id)
	if w.Code == explain.WaitArray {
		w.Jobs = b.openTasks(id)
	}
	if !free {
		return w
	}
	least, known := b.starts(id)
	w = b.room(id, least)
	w.Unmeasured = !known
	if w.Code == explain.NotWaiting {
		w.Code = explain.WaitSystem
	}
	return w
}

// Counted is the function Why with those ahead of a job counted, not named, and without those who hold what it needs,
// and until when: what a status says. Where no stage divides GPUs or admits jobs it looks at each job that waits once,
// and at no job that holds GPUs.
func (b *Brief) Counted(id sched.JobID) explain.Waiting {
	_, free := explain.OfView(b.v, id)
	switch {
	case !free:
		return b.Why(id)
	case b.p == nil || int(id) >= len(b.p.books.jobs) || b.p.books.jobs[id].in != waiting:
		w := b.room(id, int(b.v.Jobs[id].Spec.GPUs.Min))
		if w.Code == explain.NotWaiting {
			w.Code = explain.WaitSystem
		}
		return w
	case b.p.ranks.whole || b.p.s.Admit != nil:
		w := b.p.why(b.v, id)
		w.Before, w.Ahead = int32(len(w.Ahead)), nil
		if w.Code == explain.WaitBusy {
			w.Jobs, w.Until = nil, 0
		}
		return w
	}
	n, known := b.p.s.starts(b.v, id)
	w := b.room(id, n)
	w.Unmeasured, w.Before = !known, b.p.books.ahead(id, b.v.Now.Seconds())
	whyInTurn(b.p, b.v, id, n, &w, &b.ledger)
	return w
}

// room is explain.Room without those who hold GPUs, with all that is the same for other jobs found once.
func (b *Brief) room(id sched.JobID, n int) explain.Waiting {
	types := b.v.Jobs[id].Spec.Types
	list, counted := b.stocks[types]
	if !counted {
		list = explain.Stocks(b.v, types)
		b.stocks[types] = list
	}
	w := explain.OfStocks(list, n)
	if w.Code == explain.WaitUnusable {
		w.GPUs = b.unusableOf(w.Type)
	}
	return w
}

// openTasks is explain.OpenTasks, found once for all tasks of an array.
func (b *Brief) openTasks(id sched.JobID) []sched.JobID {
	first := b.v.Jobs[id].Spec.Ties.Array.First(id)
	list, known := b.open[first]
	if !known {
		list = explain.OpenTasks(b.v, id)
		b.open[first] = list
	}
	return list
}

// Unmeasured reports whether job id is kept at the width that it asks for, or has, because nothing is known of its
// speed at others.
func (b *Brief) Unmeasured(id sched.JobID) bool {
	_, known := b.starts(id)
	return !known
}

func (b *Brief) starts(id sched.JobID) (gpus int, known bool) {
	if b.p == nil {
		return int(b.v.Jobs[id].Spec.GPUs.Min), true
	}
	return b.p.s.starts(b.v, id)
}

func (b *Brief) unusableOf(t sched.TypeID) []sched.GPUID {
	list, known := b.unusable[t]
	if !known {
		list = explain.Unusable(b.v, t)
		b.unusable[t] = list
	}
	return list
}

// Order returns the jobs that wait or hold GPUs in the order in which dec, who decided last, looked at them; nil where
// it has no order that could be shown. It changes nothing.
func Order(v *sched.View, dec sched.Decider) []sched.JobID {
	if p := pipelineOf(dec); p != nil {
		return p.ranks.all(&p.books, v.Now.Seconds())
	}
	return nil
}
