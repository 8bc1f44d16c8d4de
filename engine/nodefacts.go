package engine

import "github.com/trainyard/trainyard/sched"

// nodeFacts is what the engine counts of a node's GPUs, so that a set of whole nodes is looked at node by node. All of
// it can be counted again.
type nodeFacts struct {
	wanted int32 // GPUs that are to be held
	odd    int32 // GPUs that may not be given to a job, or that a failed start is blamed on
}

// lay makes room for the facts of nodes that were added.
func lay(s *State) {
	s.view.Lay()
	for len(s.facts) < len(s.view.Nodes) {
		s.facts = append(s.facts, nodeFacts{})
	}
}

// recheck counts again which GPUs of node n are odd.
func recheck(s *State, n sched.NodeID) {
	node, odd := &s.view.Nodes[n], int32(0)
	gpus := s.view.GPUs[node.First:][:node.Spec.GPUs]
	for i := range gpus {
		if !gpus[i].Usable() || gpus[i].Blamed > 0 {
			odd++
		}
	}
	s.odd += int(odd - s.facts[n].odd)
	s.facts[n].odd = odd
}

// hold counts d attempts more, 1 or -1, on each GPU of set.
func hold(s *State, set []sched.GPUID, share sched.Share, d int16) {
	for alone := aloneOf(share, d); len(set) > 0; {
		n, k := s.view.GPUs[set[0]].Node, s.view.Lead(set)
		s.view.Nodes[n].Busy += holdEach(s.view.GPUs[set[0]:][:k], alone, d)
		set = set[k:]
	}
}

// holdEach is hold for GPUs of a node, of which it returns how many more are held.
func holdEach(gpus []sched.GPU, alone int8, d int16) (more int32) {
	edge := max(d, 0) // so many hold a GPU that was free, or is
	for i := range gpus {
		g := &gpus[i]
		g.HeldAlone += alone
		if g.Holders += d; g.Holders == edge {
			more++
		}
	}
	return more * int32(d)
}

// addTenants counts d targets more, 1 or -1, on each GPU of set.
func addTenants(s *State, set []sched.GPUID, share sched.Share, trial bool, d int16) {
	for alone := aloneOf(share, d); len(set) > 0; {
		n, k := s.view.GPUs[set[0]].Node, s.view.Lead(set)
		s.facts[n].wanted += wantEach(s.view.GPUs[set[0]:][:k], alone, trial, d)
		set = set[k:]
	}
}

// wantEach is addTenants for GPUs of a node, of which it returns how many more are wanted.
func wantEach(gpus []sched.GPU, alone int8, trial bool, d int16) (more int32) {
	for i := range gpus {
		g := &gpus[i]
		if trial {
			g.Trials += int8(d)
		}
		g.Alone += alone
		if g.Targets += d; g.Targets == max(d, 0) {
			more++
		}
	}
	return more * int32(d)
}

// aloneOf returns what d more with such a share count among those that do not share.
func aloneOf(share sched.Share, d int16) int8 {
	if share != sched.Exclusive {
		return 0
	}
	return int8(d)
}

// acquit has no failed start blamed on any GPU of set any more.
func acquit(s *State, set []sched.GPUID) {
	if s.odd == 0 {
		return
	}
	for len(set) > 0 {
		n, k := s.view.GPUs[set[0]].Node, s.view.Lead(set)
		gpus := s.view.GPUs[set[0]:][:k]
		set = set[k:]
		if s.facts[n].odd > 0 {
			for i := range gpus {
				gpus[i].Blamed = 0
			}
			recheck(s, n)
		}
	}
}

// verifiedFree reports whether no attempt is on the GPUs of j's target beyond what sharing allows.
func verifiedFree(s *State, j *sched.Job) bool {
	v := &s.view
	limit := int16(1)
	if j.Share == sched.Shared {
		limit = int16(v.ShareLimit)
	}
	for set := j.Target; len(set) > 0; {
		n, k := v.GPUs[set[0]].Node, v.Lead(set)
		gpus := v.GPUs[set[0]:][:k]
		set = set[k:]
		switch node := &v.Nodes[n]; {
		case !node.Open():
			return false
		case v.ShareLimit == 1 && node.Busy == 0 && s.facts[n].odd == 0: // nearly always
		case !allFree(gpus, limit):
			return false
		}
	}
	return true
}

// allFree reports whether each of some GPUs may be given to a job, and is held by fewer than limit, who share.
func allFree(gpus []sched.GPU, limit int16) bool {
	for i := range gpus {
		if g := &gpus[i]; g.Holders >= limit || g.HeldAlone > 0 || !g.Usable() {
			return false
		}
	}
	return true
}
