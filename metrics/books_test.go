package metrics_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// books is the naive twin of a Recorder: it writes down, after every event, what the view shows, and adds up at the
// end.
type books struct {
	metered map[sched.NodeID]float64 // W, as measured since the node last changed
	moments []moment
	jobs    []life
	events  uint64
	left    [sched.NodeGone + 1]int // nodes that left, by state
	lost    int64                   // attempts that ended with their node
	rented  int                     // nodes that joined from a pool
	seen    map[string]int          // moments at which something rare was so
}

// moment is what the cluster does from the event at a time on.
type moment struct {
	at     sched.Time
	held   int                     // GPUs held by attempts
	usable int                     // GPUs of nodes up or draining
	active int                     // nodes with a GPU held
	idle   float64                 // W, of GPUs no one holds
	sleep  float64                 // W
	all    float64                 // W
	price  float64                 // per hour
	drawn  map[sched.JobID]float64 // W, by job
	ofJob  bool                    // the event was about a job that was not done before
	down   bool                    // the event was a node that went down
}

// life is what happened to a job.
type life struct {
	submit, start, finish sched.Time
	up                    bool
	upSince               sched.Time
	from                  sched.Time // since when work goes on; Never = it does not
	run                   time.Duration
	set                   []sched.GPUID // of the attempt
	work                  []stretch
	target                []sched.GPUID
	outcome               sched.Outcome
	missed                bool
	lost                  purse

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
	b.measure(e)
	b.notice(v, e)
	for i := range v.Nodes {
		m.addNode(v, &v.Nodes[i], b.metered[sched.NodeID(i)])
	}
	for i := range v.Pools {
		m.addPool(v, sched.PoolID(i))
	}
	for id := range v.Jobs {
		b.jobs[id].target = slices.Clone(v.Jobs[id].Target)
	}
	b.moments = append(b.moments, m)
}

func (b *books) isOfJob(e *sched.Event) bool {
	switch e.Kind {
	case sched.JobArrived:
		return true
	case sched.NodeJoined, sched.NodeLeft, sched.NodeChanged, sched.GPUChanged, sched.PoolChanged, sched.PriceChanged,
		sched.Measured, sched.Ticked, sched.Moved, sched.Refused:
		return false
	}
	return e.Job != sched.None && b.jobs[e.Job].outcome == sched.NoOutcome
}

func (l *life) note(v *sched.View, e *sched.Event) {
	j := &v.Jobs[e.Job]
	l.lost.note(e, j)
	switch e.Kind {
	case sched.AttemptStarted:
		if l.start < 0 {
			l.start = e.Time
		}
		l.up, l.upSince, l.set = true, e.Time, slices.Clone(j.GPUs)
		if l.from = sched.Never; j.Attempt == sched.Running {
			l.from = e.WorkFrom
		}
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

// stretch is a time in which a job works on a GPU.
type stretch struct {
	gpu      sched.GPUID
	from, to sched.Time
}

// worked returns the GPU-seconds in which someone works.
func worked(list []stretch) (sum float64) {
	slices.SortFunc(list, func(a, b stretch) int {
		return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.from, b.from))
	})
	for i, upTo := 0, sched.Time(0); i < len(list); i++ {
		s := list[i]
		if i > 0 && list[i-1].gpu == s.gpu {
			s.from = max(s.from, upTo)
		} else {
			upTo = 0
		}
		sum += max(s.to.Sub(s.from), 0).Seconds()
		upTo = max(upTo, s.to)
	}
	return sum
}

// prices change every five seconds.
func priceAt(t sched.Time) float64 { return float64(t/(5*second)%3) - .5 }

// priced returns the integral of the price from a to b.
func priced(a, b sched.Time) (sum float64) {
	for a < b {
		next := min(b, (a/(5*second)+1)*5*second)
		sum += priceAt(a) * next.Sub(a).Seconds()
		a = next
	}
	return sum
}

func (l *life) stopWork(now sched.Time) {
	if now > l.from {
		for _, g := range l.set {
			l.work = append(l.work, stretch{g, l.from, now})
		}
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

// notice counts moments that make the difference between this cluster and a plain one.
func (b *books) notice(v *sched.View, e *sched.Event) {
	if b.seen == nil {
		b.seen = make(map[string]int)
	}
	for g := range v.GPUs {
		if v.GPUs[g].Holders > 1 {
			b.seen["shared"]++
		}
	}
	for i := range v.Jobs {
		if j := &v.Jobs[i]; j.Attempt == sched.Running && j.Live.Cap > 0 {
			b.seen["capped"]++
		}
	}
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.State == sched.NodeAsleep && n.Awaited && n.Ordered == sched.NodeUp {
			b.seen["waking"]++
		}
		if n.Busy > 0 && b.metered[sched.NodeID(i)] > 0 {
			b.seen["metered"]++
		}
	}
	if e.Kind == sched.PriceChanged && e.Pool == sched.None {
		b.seen["repriced"]++
	}
}

// measure keeps what nodes were measured to draw.
func (b *books) measure(e *sched.Event) {
	if b.metered == nil {
		b.metered = make(map[sched.NodeID]float64)
	}
	switch {
	case e.Kind == sched.NodeJoined, e.Kind == sched.NodeLeft, e.Kind == sched.NodeChanged,
		e.Kind == sched.Ordered && sched.ActionKind(e.Code) == sched.SetNode:
		delete(b.metered, e.Node)
	case e.Kind == sched.Measured && e.Job == sched.None && e.Value > 0:
		b.metered[e.Node] = e.Value
	}
}

// beyond returns what a node draws beyond idle at a mean use of its GPUs.
func beyond(s *sched.NodeSpec, u float64) float64 {
	c := &s.Curve
	switch {
	case c.Scale > 0:
		return float64(c.Scale) * (2*u - math.Pow(u, c.Exponent))
	case len(c.Points) > 0:
		for i := 1; ; i++ {
			if p, q := c.Points[i-1], c.Points[i]; u <= q.Use {
				return float64(p.Watts+(q.Watts-p.Watts)*sched.Watts((u-p.Use)/(q.Use-p.Use))) - float64(s.IdleW)
			}
		}
	}
	return float64(s.BusyGPUW) * u * float64(s.GPUs)
}

// addPower splits the power of a node that is up among the jobs on it, as power.Node.Draw says in words.
func (m *moment) addPower(v *sched.View, n *sched.Node, metered float64) {
	gpus, idle := float64(n.Spec.GPUs), float64(n.Spec.IdleW)
	on := make(map[sched.GPUID][]sched.JobID)
	held, uses, factor := map[sched.JobID]float64{}, map[sched.JobID]float64{}, map[sched.JobID]float64{}
	var jobs []sched.JobID
	for i := range v.Jobs {
		for _, g := range v.Jobs[i].GPUs {
			if v.GPUs[g].Node != v.GPUs[n.First].Node {
				continue
			}
			id := sched.JobID(i)
			on[g] = append(on[g], id)
			if held[id]++; held[id] == 1 {
				jobs = append(jobs, id)
			}
			if uses[id], factor[id] = 1, 1; v.Jobs[i].Spec.Util > 0 {
				uses[id] = float64(v.Jobs[i].Spec.Util)
			}
			if limit, w := float64(v.Jobs[i].Live.Cap), beyond(&n.Spec, uses[id])/gpus; limit > 0 && limit < w {
				factor[id] = limit / w
			}
		}
	}
	use, inUse, capped, solo, free := 0.0, 0.0, 0.0, map[sched.JobID]float64{}, gpus
	for _, list := range on {
		sum := 0.0
		for _, id := range list {
			sum += uses[id]
		}
		use += min(sum, 1) / gpus
		free--
	}
	all := 0.0
	for _, id := range jobs {
		inUse, capped = inUse+held[id]*uses[id], capped+held[id]*uses[id]*factor[id]
		solo[id] = beyond(&n.Spec, held[id]*uses[id]/gpus) * factor[id]
		all += solo[id]
	}
	busy := 0.0
	if len(jobs) > 0 {
		busy = beyond(&n.Spec, use) * capped / inUse
	}
	if metered > 0 {
		idle = min(idle, metered)
		busy = metered - idle
	}
	m.all += idle + busy
	m.idle += idle * free / gpus
	if len(jobs) == 0 {
		m.idle += busy
	}
	for _, id := range jobs {
		own, part := 0.0, 0.0
		for _, list := range on {
			if slices.Contains(list, id) {
				own += 1 / float64(len(list))
				part += partOf(uses, list, id)
			}
		}
		m.drawn[id] += idle * own / gpus
		if all > 0 {
			m.drawn[id] += busy * solo[id] / all
		} else {
			m.drawn[id] += busy * part / (gpus - free)
		}
	}
}

// partOf returns which part of a GPU with those jobs is that of job id, by their uses.
func partOf(uses map[sched.JobID]float64, on []sched.JobID, id sched.JobID) float64 {
	all := 0.0
	for _, o := range on {
		all += uses[o]
	}
	return uses[id] / all
}

func (m *moment) addNode(v *sched.View, n *sched.Node, metered float64) {
	busy := 0
	for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
		if v.GPUs[g].Holders > 0 {
			busy++
		}
	}
	m.held += busy
	if busy > 0 {
		m.active++
	}
	switch n.State {
	case sched.NodeUp, sched.NodeDraining:
		m.usable += n.Spec.GPUs
		m.addPower(v, n, metered)
	case sched.NodeAsleep:
		w, to := float64(n.Spec.SleepW), &m.sleep
		if n.Awaited && n.Ordered == sched.NodeUp {
			w, to = float64(n.Spec.IdleW), &m.idle
		}
		if metered > 0 {
			w = metered
		}
		*to += w
		m.all += w
	default:
		return
	}
	if v.PoolOf(n) == nil {
		m.price += float64(n.Price)
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
	end                                                      sched.Time
	span, held, work, usable, active, idle, sleep, all, cost float64   // seconds, GPU-seconds, node-seconds, J, money
	price                                                    float64   // of energy
	drawn                                                    []float64 // J, by job
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
		t.sleep += s * m.sleep
		t.all += s * m.all
		t.price += m.all * priced(m.at, next) / 3.6e6
		t.cost += s * m.price / 3600
		for id, w := range m.drawn {
			t.drawn[id] += s * w
		}
	}
	var work []stretch
	for i := range b.jobs {
		work = append(work, b.jobs[i].work...)
	}
	t.work = worked(work)
	return t
}
