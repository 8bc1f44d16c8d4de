package sched

// View is the state of the cluster and its jobs at one instant, read-only for everybody but the engine. Slices are
// indexed by the dense ids, live as long as the engine and change only between calls: a Decider reads them during
// Observe and Decide and keeps nothing of them.
type View struct {
	Now     Time   // time of the last event
	Version uint64 // number of events folded
	Jobs    []Job  // by JobID, in order of arrival
	Nodes   []Node // by NodeID, slots given up included
	GPUs    []GPU  // by GPUID, a node's own side by side
	Pools   []Pool // by PoolID

	ShareLimit int      // tenants one GPU may have, >= 1
	Users      Names    // numbers of the user names
	Types      []string // names of the GPU types by TypeID, as far as the header of the log shows

	ends []GPUID // by GPUID: the first one beyond its node, of those that Lay has seen
}

// Lay notes where nodes end that were added since, for Lead: they keep their GPUs for good.
func (v *View) Lay() {
	for g := len(v.ends); g < len(v.GPUs); g++ {
		v.ends = append(v.ends, v.endOf(GPUID(g)))
	}
}

// endOf returns the first GPU beyond the node of GPU g.
func (v *View) endOf(g GPUID) GPUID {
	if int(g) < len(v.ends) {
		return v.ends[g]
	}
	n := &v.Nodes[v.GPUs[g].Node]
	return n.First + GPUID(n.Spec.GPUs)
}

// Job returns job j.
func (v *View) Job(j JobID) *Job { return &v.Jobs[j] }

// PoolOf returns the pool that n is rented from, nil if it is owned.
func (v *View) PoolOf(n *Node) *Pool {
	if n.Spec.Pool < 0 || int(n.Spec.Pool) >= len(v.Pools) {
		return nil
	}
	return &v.Pools[n.Spec.Pool]
}

// Usable reports whether GPU g may be given to a job: its node is up, and to stay so, and it is in use, not quarantined
// and does not rest.
func (v *View) Usable(g GPUID) bool {
	gpu := &v.GPUs[g]
	return gpu.Usable() && v.Nodes[gpu.Node].Open()
}

// Capacity returns the number of usable GPUs.
func (v *View) Capacity() int {
	n := 0
	for i := range v.Nodes {
		node := &v.Nodes[i]
		if !node.Open() {
			continue
		}
		for g := node.First; g < node.First+GPUID(node.Spec.GPUs); g++ {
			if v.GPUs[g].Usable() {
				n++
			}
		}
	}
	return n
}

// OnNode returns how many of gpus, some in GPUID order, are on the node of the first one and so lead the others.
func (v *View) OnNode(gpus []GPUID) int {
	end := v.endOf(gpus[0])
	if k := int(end - gpus[0]); k <= len(gpus) && gpus[k-1] == end-1 { // all of them from the first on
		return k
	}
	k := 1
	for k < len(gpus) && gpus[k] < end {
		k++
	}
	return k
}

// Lead returns how many of gpus, some in GPUID order, lead the others side by side on the node of the first.
func (v *View) Lead(gpus []GPUID) int {
	if len(gpus) == 1 {
		return 1
	}
	return v.lead(gpus)
}

func (v *View) lead(gpus []GPUID) int {
	g := gpus[0]
	k := min(int(v.endOf(g)-g), len(gpus))
	if int(gpus[k-1]-g) == k-1 { // nearly always
		return k
	}
	for k = 1; gpus[k] == g+GPUID(k); {
		k++
	}
	return k
}
