package pipeline

import "github.com/trainyard/trainyard/sched"

// failure is the latest misfit of a group of waiting jobs: job id, of rank key, did not fit when books.given stood at
// place at. Nor did any job of the group behind it, and none of them fits before something is given up: what they may
// take else only shrinks.
type failure struct {
	id  sched.JobID // None: nothing failed yet
	key sched.Key
	at  uint64

	cleared bool           // nodes is known
	nodes   []sched.NodeID // the nodes that could have been wholly freed for it
}

// covers reports whether job id of the group ranks no better than the one that failed.
func (f *failure) covers(jobs []entry, id sched.JobID) bool {
	return f.id != sched.None && !before(&jobs[id].key, &f.key, id, f.id)
}

// noteFailure notes that job id, the best of its group, does not fit.
func (x *victims) noteFailure(g *group, id sched.JobID) {
	f := &g.fail
	f.id, f.key, f.at = id, x.books.jobs[id].key, x.books.given.now()
	// see walk.headBehind: it may be its second turn, and others have been placed
	f.cleared = x.cleared && !x.protection.any()
	f.nodes = append(f.nodes[:0], x.clear...)
}

// sinceFailure returns the nodes that were given up on since a job of the group of id, ranked no worse, did not fit,
// and that failure; nil if there is none, or so much was given up that all nodes are as well looked at. Nor does given
// note when a Guard changes its mind.
func (x *victims) sinceFailure(v *sched.View, id sched.JobID) ([]sched.NodeID, *failure) {
	f := &x.ranks.groups.list[x.books.jobs[id].group].fail
	p := x.protection
	if x.ranks.rising || p.guard != nil || p.leave != sched.StopUnsaved || p.rail || p.byOrder ||
		!f.covers(x.books.jobs, id) {
		return nil, nil
	}
	nodes, known := x.books.given.since(f.at)
	if !known || len(nodes) >= len(v.Nodes) {
		return nil, nil
	}
	return nodes, f
}
