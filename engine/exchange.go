package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// exchange turns what the system wants into events of the log. All targets of one Desired change hands together: what
// one job gives up another may take, whatever their order. A target that breaks an invariant is refused alone and
// leaves its job as it was, unless another took its GPUs, which leaves the job with nothing. It reports whether GPUs
// may be used from now on, or no longer.
func (r *run) exchange() (opened bool) {
	d := &r.desired
	if d.Empty() {
		return false
	}
	r.watches = append(r.watches, d.Watch...)
	for i := range d.Notes {
		r.note(sched.Noted, d.Notes[i].Job, d.Notes[i].Why)
	}
	for i := range d.Reject {
		r.reject(&d.Reject[i])
	}
	r.exchangeTargets(d)
	for _, q := range d.GPUTargets {
		opened = r.quarantine(q, sched.Reason{}, "") || opened
	}
	return r.move(d) || opened
}

func (r *run) note(k sched.EventKind, j sched.JobID, why sched.Reason) {
	r.own = sched.Event{Time: r.s.view.Now, Kind: k, Job: j, Why: why}
	r.emit(&r.own)
}

// exchangeTargets checks each target alone, then all of them against each other on the tenant counts, then logs them.
func (r *run) exchangeTargets(d *sched.Desired) {
	r.release(d)
	for i := range d.Jobs { // who takes what, in the order named
		if r.exchanged(d, i) {
			r.take(d, i)
		}
	}
	r.keep(d)
	r.recount(d)
	for i := range d.Jobs {
		if v := &r.verdicts[i]; v.why != "" {
			r.refuse(d.Jobs[i].Job, v.why)
		}
	}
	for i := range d.Jobs {
		if v := &r.verdicts[i]; (v.why == "" || v.lost) && !v.keeps {
			r.emitDecided(&d.Jobs[i], d.Set(&d.Jobs[i]))
			r.instant.changed = append(r.instant.changed, d.Jobs[i].Job)
			if d.Jobs[i].At == sched.AtEpochEnd {
				r.watches = append(r.watches, sched.Watch{Job: d.Jobs[i].Job, On: true})
			}
		}
	}
}

// release checks each target alone, and takes the jobs of those that pass, and are for now, off the tenant counts.
func (r *run) release(d *sched.Desired) {
	v := &r.s.view
	r.verdicts, r.exchanges = r.verdicts[:0], r.exchanges+1
	r.claims.begin(v)
	for i := range d.Jobs {
		t := &d.Jobs[i]
		why := checkTarget(r.s, t, d.Set(t))
		if why == "" && r.named(t.Job) {
			why = "named twice"
		}
		r.verdicts = append(r.verdicts, verdict{why: why})
		if why != "" {
			continue
		}
		j := &v.Jobs[t.Job]
		if len(j.Target) == 0 {
			t.At = sched.AtOnce // nothing to exchange
		}
		switch {
		case t.At != sched.AtOnce:
		case v.ShareLimit == 1:
			r.claims.leave(v, j.Target)
		default:
			addTenants(r.s, j.Target, j.Share, j.Trial, -1)
		}
	}
}

// keep gives jobs whose target is refused because others have its GPUs what they had, as far as no other took it.
func (r *run) keep(d *sched.Desired) {
	v := &r.s.view
	for i := range d.Jobs {
		if !r.verdicts[i].lost {
			continue
		}
		t := &d.Jobs[i]
		j := &v.Jobs[t.Job]
		r.verdicts[i].keeps = r.had(j.Target, j.Share, j.Trial, true) == ""
		t.GPUs.Len, t.Config, t.Want, t.Trial = 0, sched.Config{}, 0, false
	}
}

// recount puts the tenant counts back: the fold of Decided is what changes them.
func (r *run) recount(d *sched.Desired) {
	v := &r.s.view
	for i := range d.Jobs {
		if v.ShareLimit > 1 && r.exchanged(d, i) && !r.verdicts[i].keeps {
			t := &d.Jobs[i]
			j := &v.Jobs[t.Job]
			if len(d.Jobs) > 1 {
				addTenants(r.s, d.Set(t), t.Share, t.Trial, -1)
			}
			addTenants(r.s, j.Target, j.Share, j.Trial, 1)
		}
	}
}

// verdict is what becomes of a target of the exchange under way.
type verdict struct {
	why   string // it is refused; "" = not
	lost  bool   // it is refused because others have its GPUs
	keeps bool   // its job goes on with what it had
}

// exchanged reports whether target i took part in the exchange of GPUs: it passed the check alone and is for now.
func (r *run) exchanged(d *sched.Desired, i int) bool {
	return (r.verdicts[i].why == "" || r.verdicts[i].lost) && d.Jobs[i].At == sched.AtOnce
}

// take has target i take its GPUs, if they are to be had. That is counted for those that come after it: not for one
// that is alone.
func (r *run) take(d *sched.Desired, i int) {
	t, set := &d.Jobs[i], d.Set(&d.Jobs[i])
	if why := r.had(set, t.Share, t.Trial, len(d.Jobs) > 1); why != "" {
		r.verdicts[i].why, r.verdicts[i].lost = why, true
	}
}

// had says why set cannot be had, or "": then it is, and where it counts for others it is counted.
func (r *run) had(set []sched.GPUID, share sched.Share, trial, counts bool) (why string) {
	v := &r.s.view
	if v.ShareLimit == 1 {
		if why = r.claims.conflict(r.s, set); why == "" && counts {
			r.claims.take(v, set)
		}
	} else if why = conflict(v, set, share, trial); why == "" && counts {
		addTenants(r.s, set, share, trial, 1)
	}
	return why
}

// conflict says which GPU of set cannot be had after others took theirs, or "": beyond the limit, or together with one
// who does not share, or with another newcomer on trial.
func conflict(v *sched.View, set []sched.GPUID, share sched.Share, trial bool) string {
	limit := int16(1)
	if share == sched.Shared {
		limit = int16(v.ShareLimit)
	}
	for _, g := range set {
		switch gpu := &v.GPUs[g]; {
		case gpu.Targets >= limit:
			return fmt.Sprintf("GPU %d has %d tenants already", g, gpu.Targets)
		case gpu.Alone > 0:
			return fmt.Sprintf("GPU %d belongs to one job alone", g)
		case trial && gpu.Trials > 0:
			return fmt.Sprintf("GPU %d has a job on trial already", g)
		}
	}
	return ""
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

func (r *run) refuse(id sched.JobID, why string) {
	r.emit(&sched.Event{Time: r.s.view.Now, Kind: sched.Refused, Job: id, Text: why,
		Why: sched.Reason{Code: sched.WhyInvalid}})
}

// quarantine logs what is requested of a GPU, and reports whether it is new.
func (r *run) quarantine(q sched.GPUTarget, why sched.Reason, text string) bool {
	v := &r.s.view
	if q.GPU < 0 || int(q.GPU) >= len(v.GPUs) {
		r.refuse(sched.None, fmt.Sprintf("GPU %d does not exist", q.GPU))
		return false
	}
	if v.GPUs[q.GPU].Quarantined == q.Quarantined {
		return false
	}
	e := sched.Event{Time: v.Now, Kind: sched.Moved, Node: v.GPUs[q.GPU].Node, GPUs: []sched.GPUID{q.GPU}, Why: why,
		Text: text}
	if q.Quarantined {
		e.Code = sched.QuarantineGPU
	}
	r.emit(&e)
	return true
}

// mostBlamed is how many failed starts in a row may blame a GPU. A placer that has no chance in it would else pick the
// same bad GPU for ever; fewer would take a job's own fault for the GPU's.
const mostBlamed = 3

// quarantineSuspects takes out of use the GPUs that too many failed starts in a row have blamed, as long as enough are
// left, see mayLose.
func (r *run) quarantineSuspects(suspects []sched.GPUID) {
	v := &r.s.view
	for _, g := range suspects {
		if int(g) >= len(v.GPUs) || v.GPUs[g].Blamed < mostBlamed {
			continue
		}
		if v.GPUs[g].Rests != 0 || mayLose(v, v.Nodes[v.GPUs[g].Node].Spec.Type) > 0 {
			r.quarantine(sched.GPUTarget{GPU: g, Quarantined: true},
				sched.Reason{Code: sched.WhyStartFailed, A: mostBlamed},
				fmt.Sprintf("%d starts in a row failed on GPU %d", mostBlamed, g))
		}
	}
}

// move logs what is requested of nodes and pools, if it is new; Reconcile makes actions of it. It reports whether
// something is of nodes.
func (r *run) move(d *sched.Desired) (nodes bool) {
	v := &r.s.view
	for _, n := range d.Nodes {
		if why := checkNode(v, n); why != "" {
			r.refuse(sched.None, why)
		} else if v.Nodes[n.Node].Target != n.State {
			r.own = sched.Event{Time: v.Now, Kind: sched.Moved, Node: n.Node, Code: int32(n.State)}
			r.emit(&r.own)
			nodes = true
		}
	}
	for _, p := range d.Pools {
		if why := checkPool(v, p); why != "" {
			r.refuse(sched.None, why)
		} else if v.Pools[p.Pool].Target != p.Count {
			r.own = sched.Event{Time: v.Now, Kind: sched.Moved, Node: sched.None, Pool: p.Pool, Code: p.Count}
			r.emit(&r.own)
		}
	}
	return nodes
}

// reject refuses a job for good, if it is not under way.
func (r *run) reject(x *sched.Reject) {
	switch v := &r.s.view; {
	case x.Job < 0 || int(x.Job) >= len(v.Jobs):
		r.refuse(x.Job, fmt.Sprintf("job %d is not known", x.Job))
	case v.Jobs[x.Job].State == sched.Done || v.Jobs[x.Job].HoldsDevices():
		r.refuse(x.Job, fmt.Sprintf("job is %v, too late to reject it", v.Jobs[x.Job].State))
	default:
		r.note(sched.Rejected, x.Job, x.Why)
	}
}

// exchangeAtEpochEnd carries out the exchange a job's target left for the epoch end just folded, if its GPUs are still
// to be had. If not, it is refused, and forgotten.
func (r *run) exchangeAtEpochEnd(id sched.JobID) {
	l := r.s.due
	if l == nil {
		return
	}
	r.s.due = nil
	r.desired.Reset()
	t := r.desired.Give(id, l.GPUs, l.Why)
	t.Config, t.Want, t.Trial = l.Config, l.Want, l.Trial
	r.exchangeTargets(&r.desired)
}
