package timeline

import "github.com/trainyard/trainyard/sched"

// group is what waiting jobs have in common that decides whether they fit.
type group struct {
	types sched.TypeSet
	need  int32 // GPUs with which one would start
}

// queue is the jobs that wait.
type queue struct {
	groups []group
	counts []int // of groups
	jobs   int
	gpus   int // that they ask for
}

// change adds d jobs of a group, 1 or -1, that ask for so many GPUs each.
func (q *queue) change(g group, asks int32, d int) {
	q.jobs, q.gpus = q.jobs+d, q.gpus+d*int(asks)
	for i := range q.groups {
		if q.groups[i] == g {
			q.counts[i] += d
			return
		}
	}
	q.groups, q.counts = append(q.groups, g), append(q.counts, d)
}

// free is the idle GPUs of one type.
type free struct {
	gpus  int
	size  int   // GPUs of the largest node
	nodes []int // by idle GPUs: how many nodes have so many
}

// change moves a node from was to now idle GPUs.
func (f *free) change(was, now int) {
	for len(f.nodes) <= max(was, now) {
		f.nodes = append(f.nodes, 0)
	}
	f.gpus += now - was
	f.nodes[was]--
	f.nodes[now]++
}

// together reports whether n GPUs are idle on as few nodes as can have so many.
func (f *free) together(n int) bool {
	nodes, sum := (n+f.size-1)/max(f.size, 1), 0
	for k := len(f.nodes) - 1; k > 0 && nodes > 0; k-- {
		take := min(f.nodes[k], nodes)
		if take > 0 {
			sum, nodes = sum+take*k, nodes-take
		}
	}
	return sum >= n
}

// idleClass returns the class of the idle GPUs of a type.
func (q *queue) idleClass(f *free, t sched.TypeID) Class {
	class := Unwanted
	for i, g := range q.groups {
		if q.counts[i] == 0 || !g.types.Has(t) {
			continue
		}
		switch {
		case int(g.need) > f.gpus:
			class = max(class, TooFew)
		case f.together(int(g.need)):
			return Policy
		default:
			class = max(class, Apart)
		}
	}
	return class
}
