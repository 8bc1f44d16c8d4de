package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// exchange turns what the system wants into events of the log. All targets of one Desired change hands together: what
// one job gives up another may take, whatever their order. A target that breaks an invariant is refused alone and
// leaves its job as it was, unless another took its GPUs, which leaves the job with nothing.
func (r *run) exchange() {
	d := &r.desired
	if d.Empty() {
		return
	}
	for i := range d.Notes {
		r.note(sched.Noted, d.Notes[i].Job, d.Notes[i].Why)
	}
	for i := range d.Reject {
		r.note(sched.Rejected, d.Reject[i].Job, d.Reject[i].Why)
	}
	r.exchangeTargets(d)
	for _, q := range d.Quaran {
		r.emit(&sched.Event{Time: r.s.view.Now, Kind: sched.GPUChanged, Value: float64(q.GPU), Code: int32(q.State)})
	}
	r.requestRest(d)
}

func (r *run) note(k sched.EventKind, j sched.JobID, why sched.Reason) {
	r.own = sched.Event{Time: r.s.view.Now, Kind: k, Job: j, Why: why}
	r.emit(&r.own)
}

// exchangeTargets checks each target alone, then all of them against each other on the tenant counts, then logs them.
func (r *run) exchangeTargets(d *sched.Desired) {
	v := &r.s.view
	r.ok, r.exchanges = r.ok[:0], r.exchanges+1
	for i := range d.Jobs {
		t := &d.Jobs[i]
		why := checkTarget(v, t, d.Set(t))
		if why == "" && r.named(t.Job) {
			why = "named twice"
		}
		if rival := r.s.rivalTrial(t, d.Set(t)); why == "" && rival != sched.None {
			why = fmt.Sprintf("job %d is on trial there", rival)
		}
		r.ok = append(r.ok, why == "")
		if why != "" {
			r.refuse(t, why)
			continue
		}
		if t.At == sched.AtOnce {
			addTenants(v, v.Jobs[t.Job].Target, -1)
		}
	}
	for i := range d.Jobs { // who takes what, in the order named
		t := &d.Jobs[i]
		if !r.ok[i] || t.At != sched.AtOnce {
			continue
		}
		if g := conflict(v, t, d.Set(t)); g != sched.None {
			r.refuse(t, fmt.Sprintf("GPU %d has %d tenants already", g, v.GPUs[g].Targets))
			t.GPUs.Len = 0
			continue
		}
		addTenants(v, d.Set(t), 1)
	}
	for i := range d.Jobs { // the counts go back: the fold of Decided is what changes them
		if t := &d.Jobs[i]; r.ok[i] && t.At == sched.AtOnce {
			addTenants(v, d.Set(t), -1)
			addTenants(v, v.Jobs[t.Job].Target, 1)
		}
	}
	for i := range d.Jobs {
		if r.ok[i] {
			r.emitDecided(&d.Jobs[i], d.Set(&d.Jobs[i]))
		}
	}
}

// named reports whether job id was named before in the present exchange, and notes that it is now.
func (r *run) named(id sched.JobID) bool {
	for int(id) >= len(r.stamps) {
		r.stamps = append(r.stamps, 0)
	}
	before := r.stamps[id] == r.exchanges
	r.stamps[id] = r.exchanges
	return before
}

func (r *run) emitDecided(t *sched.Target, set []sched.GPUID) {
	r.own = sched.Event{Time: r.s.view.Now, Kind: sched.Decided, Job: t.Job, Target: t, GPUs: set, Why: t.Why}
	r.emit(&r.own)
}

func addTenants(v *sched.View, set []sched.GPUID, d int16) {
	for _, g := range set {
		v.GPUs[g].Targets += d
	}
}

func (r *run) refuse(t *sched.Target, why string) {
	r.emit(&sched.Event{Time: r.s.view.Now, Kind: sched.Refused, Job: t.Job, Text: why,
		Why: sched.Reason{Code: sched.WhyInvalid}})
}

// requestRest turns pool targets, node targets and watches into actions of the plan under way.
func (r *run) requestRest(d *sched.Desired) {
	now := r.s.view.Now
	for _, p := range d.Pools {
		r.emit(&sched.Event{Time: now, Kind: sched.Moved, Node: sched.None, Value: float64(p.Pool), Code: p.Count})
	}
	for _, n := range d.Nodes {
		r.emit(&sched.Event{Time: now, Kind: sched.Moved, Node: n.Node, Code: int32(n.State)})
	}
}

// exchangeAtEpochEnd carries out the exchange a job's target left for this moment, if its GPUs are still to be had.
func (r *run) exchangeAtEpochEnd(id sched.JobID) {
	j := &r.s.view.Jobs[id]
	if len(j.Next) == 0 || j.Attempt != sched.Running {
		return
	}
	r.desired.Reset()
	r.desired.Give(id, j.Next, sched.Reason{Code: sched.WhyMoved}).Share = j.Share
	r.exchangeTargets(&r.desired)
}
