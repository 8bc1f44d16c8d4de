package pipeline

import "github.com/trainyard/trainyard/sched"

// possible knows what the cluster could hold with nothing on it: nodes that are gone for good do not count, nodes that
// may come back, and GPUs that rest, do.
type possible struct {
	empty *sched.Ledger // with nothing booked
	ghost sched.View    // behind empty
}

// survey looks at the whole cluster.
func (p *possible) survey(v *sched.View) {
	p.ghost = sched.View{Nodes: append([]sched.Node(nil), v.Nodes...), GPUs: append([]sched.GPU(nil), v.GPUs...)}
	for g := range p.ghost.GPUs {
		p.ghost.GPUs[g].Rests = 0
	}
	for i := range p.ghost.Nodes {
		if p.ghost.Nodes[i].State != sched.NodeGone {
			p.ghost.Nodes[i].State = sched.NodeUp
		}
	}
	p.empty = sched.NewLedger(&p.ghost)
}

// resurvey is survey after a change of node n alone.
func (p *possible) resurvey(v *sched.View, n sched.NodeID) {
	if int(n) >= len(p.ghost.Nodes) {
		p.survey(v)
		return
	}
	node, is := &p.ghost.Nodes[n], &v.Nodes[n]
	if node.Generation != is.Generation { // another machine
		node.Generation, node.Spec = is.Generation, is.Spec
	}
	if node.State, node.Target = is.State, is.Target; node.State != sched.NodeGone {
		node.State = sched.NodeUp
	}
	end := node.First + sched.GPUID(node.Spec.GPUs)
	copy(p.ghost.GPUs[node.First:end], v.GPUs[node.First:end])
	for g := node.First; g < end; g++ {
		p.ghost.GPUs[g].Rests = 0
	}
	if !p.empty.Refresh(n) {
		p.survey(v)
	}
}

// fits reports whether job id of v, of shape x, could start. The answer is kept with the shape until groups.forgetFits.
func (p *possible) fits(v *sched.View, s *Stages, x *shape, id sched.JobID) bool {
	if x.fits == unknown {
		p.ghost.Jobs = v.Jobs
		x.fits = no
		if s.Place.Fits(v, p.empty, id, s.least(v, id)) {
			x.fits = yes
		}
	}
	return x.fits == yes
}
