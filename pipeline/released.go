package pipeline

import "github.com/trainyard/trainyard/sched"

// given is the log of what was given up: the nodes on which a holder left, was evicted or fell in rank. A gang that did
// not fit one node when the log stood at some place can only fit one of the nodes logged since.
type given struct {
	base  uint64 // place of nodes[0]
	nodes []sched.NodeID
}

// maxGiven is the length at which the log starts again: looking at all nodes is cheaper then.
const maxGiven = 4096

// now returns the present place; it changes whenever anything is given up.
func (g *given) now() uint64 { return g.base + uint64(len(g.nodes)) }

// note logs the nodes of a set.
func (g *given) note(l *sched.Ledger, set []sched.GPUID) {
	if len(g.nodes) >= maxGiven {
		g.forget()
	}
	for last := sched.NodeID(sched.None); len(set) > 0; {
		n, k := l.NodeOf(set[0]), l.Lead(set)
		if n != last {
			g.nodes = append(g.nodes, n)
		}
		last, set = n, set[k:]
	}
}

// forget has all places before now mean nothing any more: anything may have been given up.
func (g *given) forget() {
	g.base = g.now() + 1
	g.nodes = g.nodes[:0]
}

// since returns the nodes logged since place, and whether that is known.
func (g *given) since(place uint64) ([]sched.NodeID, bool) {
	if place < g.base {
		return nil, false
	}
	return g.nodes[place-g.base:], true
}
