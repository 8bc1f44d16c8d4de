package metrics

import (
	"cmp"
	"slices"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// Energy is what a Recorder knows of power beyond the specifications of nodes. The zero value knows nothing.
type Energy struct {
	// Caps returns what GPUs of a type do under power caps for jobs like spec, by rising limit and valid; nil or none =
	// a cap only bounds what the model has a GPU draw.
	Caps func(gpu sched.TypeID, spec *sched.JobSpec) power.Caps
	// Price of a kWh, and Carbon in grams per kWh, by time of the run; nil = unknown.
	Price, Carbon *power.Series
}

// draw is power, or energy, and who answers for it. They are disjoint.
type draw struct{ jobs, idle, sleep float64 }

func (d draw) all() float64 { return d.jobs + d.idle + d.sleep }

// gauge is a sum of what nodes draw. It is 0 exactly where none draws anything, whatever rounding left.
type gauge struct {
	watts float64
	nodes int // that draw something
}

// exchange replaces what a node draws.
func (g *gauge) exchange(was, now float64) {
	if was != 0 {
		g.nodes--
	}
	if now != 0 {
		g.nodes++
	}
	if g.watts += now - was; g.nodes == 0 {
		g.watts = 0
	}
}

// meter splits the power of each node among the jobs on it, by the rule of power.Node.Draw.
type meter struct {
	jobs, idle, sleep gauge // of all nodes
	any               bool  // there is one whose tenants are kept
	metered           bool  // one was measured
	nodes             []nodeMeter
	list              []power.Tenant        // scratch
	parts             []sched.Watts         // scratch
	used              map[sched.JobID]usage // of jobs that hold GPUs, where it was measured
}

// nodeMeter is what a node draws at present.
type nodeMeter struct {
	machine int32 // that model is of: its generation
	model   power.Node
	draws   bool // model does, ever
	powered bool // it draws anything at all
	kept    bool // tenants are kept: it drew something once
	now     draw // W
	since   sched.Time
	metered sched.Watts // as measured since its state last changed; 0 = it was not
	tenants []tenant
}

// tenant is a job on a node.
type tenant struct {
	job   sched.JobID
	gpus  []sched.GPUID // of the node, in order
	use   float64
	cap   float64
	watts sched.Watts
}

// changed takes the state, order and specification of node n from v, and forgets what was measured before.
func (r *Recorder) changed(v *sched.View, n sched.NodeID) {
	for int(n) >= len(r.meter.nodes) {
		r.meter.nodes = append(r.meter.nodes, nodeMeter{})
	}
	m, node := &r.meter.nodes[n], &v.Nodes[n]
	r.charge(m, v.Now)
	if m.machine != node.Generation {
		m.machine, m.model = node.Generation, power.Of(&node.Spec)
		m.draws = m.model.At(1) > 0 || m.model.Sleep > 0
	}
	if m.metered, m.powered = 0, m.draws; m.powered {
		r.keepTenants(v, m, n)
	}
	r.redraw(v, n)
}

// measured takes the power that node n was measured to draw.
func (r *Recorder) measured(v *sched.View, n sched.NodeID, w sched.Watts) {
	m := &r.meter.nodes[n]
	r.charge(m, v.Now)
	m.metered, m.powered, r.meter.metered = w, true, true
	r.keepTenants(v, m, n)
	r.redraw(v, n)
}

// Metered reports whether some node was measured to draw power: what others draw is what a model says.
func (r *Recorder) Metered() bool { return r.meter.metered }

// keepTenants keeps the tenants of node n from now on, from those that it has: of nodes that never drew anything no one
// asks for them. They stand in the order in which they were started.
func (r *Recorder) keepTenants(v *sched.View, m *nodeMeter, n sched.NodeID) {
	if m.kept {
		return
	}
	m.kept, r.meter.any = true, true
	lookAtEach(r)
	node := &v.Nodes[n]
	end := node.First + sched.GPUID(node.Spec.GPUs)
	var jobs []sched.JobID
	for g := node.First; g < end && int(g) < len(r.on); g++ {
		jobs = append(jobs, r.on[g]...)
	}
	slices.SortFunc(jobs, func(a, b sched.JobID) int {
		return cmp.Or(cmp.Compare(v.Jobs[a].Began, v.Jobs[b].Began), cmp.Compare(a, b))
	})
	for _, id := range slices.Compact(jobs) {
		set := r.held.set(id)
		from, _ := slices.BinarySearch(set, node.First)
		to, _ := slices.BinarySearch(set, end)
		r.addTenant(v, m, n, id, set[from:to])
	}
}

// addTenant has job id, which holds gpus of node n, answer for its part of it.
func (r *Recorder) addTenant(v *sched.View, m *nodeMeter, n sched.NodeID, id sched.JobID, gpus []sched.GPUID) {
	t := tenant{job: id, gpus: gpus, use: useOf(v.Jobs[id].Spec), cap: 1}
	if m.powered {
		t.cap = r.capOf(v, id, n, m)
	}
	m.tenants = append(m.tenants, t)
}

// settle has all jobs answer for what their nodes drew, and what they used of their GPUs, up to end.
func (r *Recorder) settle(end sched.Time) {
	for id := range r.meter.used {
		book(r, id, end)
	}
	for i := range r.meter.nodes {
		if m := &r.meter.nodes[i]; end > m.since {
			r.charge(m, end)
		}
	}
}

// enter and leave have job id, which holds set, answer for its part of each node there, or no longer.
func (r *Recorder) enter(v *sched.View, id sched.JobID, set []sched.GPUID) {
	r.eachNode(v, set, func(m *nodeMeter, n sched.NodeID, gpus []sched.GPUID) {
		r.addTenant(v, m, n, id, gpus)
	})
}

func (r *Recorder) leave(v *sched.View, id sched.JobID, set []sched.GPUID) {
	r.eachNode(v, set, func(m *nodeMeter, _ sched.NodeID, _ []sched.GPUID) {
		m.tenants = slices.DeleteFunc(m.tenants, func(t tenant) bool { return t.job == id })
	})
}

// adjusted takes the power cap under which job id now runs.
func (r *Recorder) adjusted(v *sched.View, id sched.JobID) {
	r.eachNode(v, r.held.set(id), func(m *nodeMeter, n sched.NodeID, _ []sched.GPUID) {
		i := slices.IndexFunc(m.tenants, func(t tenant) bool { return t.job == id })
		m.tenants[i].cap = r.capOf(v, id, n, m)
	})
}

// eachNode changes each node of set whose tenants are kept, a part of which are its gpus: what it drew so far is
// charged as it was.
func (r *Recorder) eachNode(v *sched.View, set []sched.GPUID,
	change func(m *nodeMeter, n sched.NodeID, gpus []sched.GPUID)) {
	if !r.meter.any {
		return
	}
	for len(set) > 0 {
		n := v.GPUs[set[0]].Node
		k := v.OnNode(set)
		if m := &r.meter.nodes[n]; m.kept {
			r.charge(m, v.Now)
			change(m, n, set[:k])
			r.redraw(v, n)
		}
		set = set[k:]
	}
}

// useOf returns the use of its GPUs that a job alone on them makes; all of it where nothing is known.
func useOf(s *sched.JobSpec) float64 {
	if s.Util == 0 {
		return 1
	}
	return float64(s.Util)
}

// capOf returns the power of job id on node n under its cap over that without.
func (r *Recorder) capOf(v *sched.View, id sched.JobID, n sched.NodeID, m *nodeMeter) float64 {
	limit, spec := v.Jobs[id].Live.Cap, v.Jobs[id].Spec
	if !(limit > 0) {
		return 1
	}
	if r.Energy.Caps != nil {
		if c := r.Energy.Caps(v.Nodes[n].Spec.Type, spec); len(c) > 0 {
			return c.Factor(limit)
		}
	}
	if w := m.model.GPU(useOf(spec)); w > limit {
		return float64(limit / w)
	}
	return 1
}

// charge has the tenants of a node answer for what it drew since it last changed.
func (r *Recorder) charge(m *nodeMeter, now sched.Time) {
	if now > m.since && len(m.tenants) > 0 {
		dt := now.Sub(m.since).Seconds()
		for i := range m.tenants {
			t := &m.tenants[i]
			r.record(t.job).Energy += sched.Joules(float64(t.watts) * dt)
		}
	}
	m.since = now
}

// redraw computes what node n draws from now on. Asleep it draws its sleep power, and idle power while it wakes.
func (r *Recorder) redraw(v *sched.View, n sched.NodeID) {
	m, node := &r.meter.nodes[n], &v.Nodes[n]
	if !m.powered {
		return
	}
	var now draw
	switch {
	case node.State == sched.NodeUp || node.State == sched.NodeDraining:
		now = r.split(v, m, node)
	case node.State == sched.NodeAsleep && node.Awaited && node.Ordered == sched.NodeUp:
		now.idle = float64(cmp.Or(m.metered, m.model.Idle))
	case node.State == sched.NodeAsleep:
		now.sleep = float64(cmp.Or(m.metered, m.model.Sleep))
	}
	r.meter.jobs.exchange(m.now.jobs, now.jobs)
	r.meter.idle.exchange(m.now.idle, now.idle)
	r.meter.sleep.exchange(m.now.sleep, now.sleep)
	m.now = now
}

// split splits the power of a node that is up among its tenants.
func (r *Recorder) split(v *sched.View, m *nodeMeter, node *sched.Node) draw {
	r.meter.list = r.meter.list[:0]
	for i := range m.tenants {
		t := &m.tenants[i]
		own := 0.0
		for _, g := range t.gpus {
			own += 1 / float64(len(r.on[g]))
		}
		r.meter.list = append(r.meter.list, power.Tenant{GPUs: float64(len(t.gpus)), Own: own,
			Part: partOf(r, v, t.job, t.gpus), Use: t.use, Cap: t.cap})
	}
	parts, all := m.model.Draw(r.meanUse(v, node), r.meter.list, m.metered, r.meter.parts[:0])
	r.meter.parts = parts
	for i := range m.tenants {
		m.tenants[i].watts = parts[i]
	}
	return draw{jobs: float64(all.Total - all.Idle), idle: float64(all.Idle)}
}

// meanUse returns the mean use of the GPUs of a node: on each, that of its jobs together, at most all of it.
func (r *Recorder) meanUse(v *sched.View, node *sched.Node) float64 {
	sum := 0.0
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		use := 0.0
		if int(g) < len(r.on) {
			for _, id := range r.on[g] {
				use += useOf(v.Jobs[id].Spec)
			}
		}
		sum += min(use, 1)
	}
	return sum / float64(node.Spec.GPUs)
}
