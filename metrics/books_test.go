package metrics_test

import (
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// books is the naive twin of a Recorder: it writes down, after every event, what the view shows, and adds up at the end.
type books struct {
	moments []moment
	jobs    []life
	events  uint64
	left    [sched.NodeGone + 1]int // nodes that left, by state
	lost    int64                   // attempts that ended with their node
	rented  int                     // nodes that joined from a pool
}

// moment is what the cluster does from the event at a time on.
type moment struct {
	at     sched.Time
	held   int                     // GPUs held by attempts
	usable int                     // GPUs of nodes up or draining
	active int                     // nodes with a GPU held
	idle   float64                 // W, with no GPU busy
	busy   float64                 // W, beyond that
	price  float64                 // per hour
	drawn  map[sched.JobID]float64 // W, beyond idle, by job
	ofJob  bool                    // the event was about a job that was not done before
	down   bool                    // the event was a node that went down
}

// life is what happened to a job.
type life struct {
	submit, start, finish sched.Time
	up                    bool
	upSince               sched.Time
	from                  sched.Time // since when work goes on; Never = it does not
	gpus                  int        // of the attempt
	run                   time.Duration
	work                  float64 // GPU-seconds in which work went on
	target                []sched.GPUID
	outcome               sched.Outcome
	missed                bool

	preemptions, migrations, resizes, promotions int32
}

// Log writes event e down.
func (b *books) Log(v *sched.View, e *sched.Event) {
	b.events++
	if e.Kind == sched.NodeLeft {
		b.left[e.Code]++
	}
	if e.Kind == sched.AttemptEnded && e.Outcome == sched.NodeLost {
		b.lost++
	}
	if e.Kind == sched.NodeJoined && e.NodeSpec.Pool >= 0 {
		b.rented++
	}
	down := e.Kind == sched.NodeLeft && e.Code == int32(sched.NodeDown)
	m := moment{at: e.Time, ofJob: b.isOfJob(e), down: down, drawn: make(map[sched.JobID]float64)}
	if e.Kind == sched.JobArrived {
		b.jobs = append(b.jobs, life{submit: e.Time, start: sched.None, finish: sched.None, from: sched.Never})
	}
	if m.ofJob {
		b.jobs[e.Job].note(v, e)
	}
	for i := range v.Nodes {
		m.addNode(v, &v.Nodes[i])
	}
	for i := range v.Pools {
		m.addPool(v, sched.PoolID(i))
	}
	for id := range v.Jobs {
		for _, g := range v.Jobs[id].GPUs {
			m.drawn[sched.JobID(id)] += float64(v.Nodes[v.GPUs[g].Node].Spec.BusyGPUW)
		}
		b.jobs[id].target = slices.Clone(v.Jobs[id].Target)
	}
	b.moments = append(b.moments, m)
}

func (b *books) isOfJob(e *sched.Event) bool {
	switch e.Kind {
	case sched.JobArrived:
		return true
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.GPUChanged, sched.PoolChanged, sched.PriceChanged, sched.Measured, sched.Ticked, sched.Moved, sched.Refused:
		return false
	}
	return e.Job != sched.None && b.jobs[e.Job].outcome == sched.NoOutcome
}

func (l *life) note(v *sched.View, e *sched.Event) {
	j := &v.Jobs[e.Job]
	switch e.Kind {
	case sched.AttemptStarted:
		if l.start < 0 {
			l.start = e.Time
		}
		l.up, l.upSince, l.from, l.gpus = true, e.Time, e.WorkFrom, len(j.GPUs)
	case sched.AttemptEnded:
		l.stopWork(e.Time)
		if l.up {
			l.run += e.Time.Sub(l.upSince)
		}
		l.up = false
	case sched.Ordered:
		if sched.ActionKind(e.Code) == sched.Stop {
			l.stopWork(e.Time)
		}
	case sched.Noted:
		if e.Why.Code == sched.WhyPromoted {
			l.promotions++
		}
	case sched.Decided:
		l.exchange(e.GPUs)
	}
	if j.State == sched.Done {
		l.outcome, l.finish = j.Outcome, e.Time
		l.missed = j.Spec.Deadline > 0 && e.Time > j.Spec.Deadline
	}
}

func (l *life) stopWork(now sched.Time) {
	if now > l.from {
		l.work += float64(l.gpus) * now.Sub(l.from).Seconds()
	}
	l.from = sched.Never
}

func (l *life) exchange(set []sched.GPUID) {
	switch {
	case len(l.target) == 0:
	case len(set) == 0:
		l.preemptions++
	case len(set) != len(l.target):
		l.resizes++
	case !slices.Equal(set, l.target):
		l.migrations++
	}
}

func (m *moment) addNode(v *sched.View, n *sched.Node) {
	busy := 0
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if v.GPUs[g].Holders > 0 {
			busy++
		}
	}
	m.held += busy
	m.busy += float64(busy) * float64(n.Spec.BusyGPUW)
	if busy > 0 {
		m.active++
	}
	switch n.State {
	case sched.NodeUp, sched.NodeDraining:
		m.usable += n.Spec.GPUs
		m.idle += float64(n.Spec.IdleW)
	case sched.NodeAsleep:
		m.idle += float64(n.Spec.SleepW)
	default:
		return
	}
	if v.PoolOf(n) == nil {
		m.price += float64(n.Spec.DollarsHr)
	}
}

// addPool adds what a pool costs per hour: for the nodes ordered or, if there are more, for those that are there.
func (m *moment) addPool(v *sched.View, id sched.PoolID) {
	nodes := 0
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Spec.Pool == id && n.State != sched.NodeDown && n.State != sched.NodeGone {
			nodes++
		}
	}
	m.price += float64(v.Pools[id].Price) * float64(max(nodes, int(v.Pools[id].Ordered)))
}

// failures counts the nodes that went down after the first event about a job and before the last about one not done.
func (b *books) failures() int64 {
	n, last, any := int64(0), int64(0), false
	for i := range b.moments {
		switch m := &b.moments[i]; {
		case m.ofJob:
			any, last = true, n
		case m.down && any:
			n++
		}
	}
	return last
}

// totals are the sums of books from the first arrival to the last event of a job that was not done.
type totals struct {
	end                                               sched.Time
	span, held, work, usable, active, idle, all, cost float64   // seconds, GPU-seconds, node-seconds, J, money
	drawn                                             []float64 // J, by job
}

func (b *books) add() totals {
	t, first := totals{drawn: make([]float64, len(b.jobs))}, sched.Never
	for i := range b.moments {
		if b.moments[i].ofJob {
			first, t.end = min(first, b.moments[i].at), b.moments[i].at
		}
	}
	for i := range b.moments[:len(b.moments)-1] {
		m, next := &b.moments[i], b.moments[i+1].at
		if m.at < first || next > t.end {
			continue
		}
		s := next.Sub(m.at).Seconds()
		t.span += s
		t.held += s * float64(m.held)
		t.usable += s * float64(m.usable)
		t.active += s * float64(m.active)
		t.idle += s * m.idle
		t.all += s * (m.idle + m.busy)
		t.cost += s * m.price / 3600
		for id, w := range m.drawn {
			t.drawn[id] += s * w
		}
	}
	for i := range b.jobs {
		t.work += b.jobs[i].work
	}
	return t
}
