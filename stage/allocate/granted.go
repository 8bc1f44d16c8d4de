package allocate

import "github.com/trainyard/trainyard/sched"

// types says, by job, on which type it was last granted GPUs: 1 + its number, 0 = it never was.
type types []int8

// of returns the type of job j; false if it has none.
func (t types) of(j sched.JobID) (sched.TypeID, bool) {
	if int(j) >= len(t) || t[j] == 0 {
		return 0, false
	}
	return sched.TypeID(t[j] - 1), true
}

// set notes the type of job j.
func (t *types) set(j sched.JobID, of sched.TypeID) {
	for int(j) >= len(*t) {
		*t = append(*t, 0)
	}
	(*t)[j] = int8(of) + 1
}

// unset forgets the type of job j.
func (t types) unset(j sched.JobID) {
	if int(j) < len(t) {
		t[j] = 0
	}
}

// grant turns a width into a grant: of fewer GPUs only where the batch size is no other.
func (r *Rates) grant(v *sched.View, c *Claim, width int) sched.Grant {
	g := sched.Grant{Job: c.ID, GPUs: int32(width), Least: int32(width), Config: r.config(v, c, width)}
	for k := width - 1; c.curve != nil && k >= c.Min && c.S[k] > 0 &&
		configOf(c.curve, k) == configOf(c.curve, width); k-- {
		g.Least = int32(k)
	}
	return g
}

// watch has the ends of the epochs of a job reported, where its speed changes.
func (r *Rates) watch(v *sched.View, c *Claim, d *sched.Desired) {
	if c.curve == nil || v.Jobs[c.ID].Watched {
		return
	}
	if chain, _, _ := r.Curves.Chain(v, c.ID); len(chain) > 1 {
		d.Watch = append(d.Watch, sched.Watch{Job: c.ID, On: true})
	}
}

// mostOf appends, by type, the GPUs that there can ever be: those of nodes, and of pools if all is rented.
func mostOf(v *sched.View, types int, most []int) []int {
	for range types {
		most = append(most, 0)
	}
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.State != sched.NodeGone && v.PoolOf(n) == nil && int(n.Spec.Type) < len(most) {
			most[n.Spec.Type] += n.Spec.GPUs
		}
	}
	for i := range v.Pools {
		if p := &v.Pools[i]; int(p.Spec.Type) < len(most) {
			most[p.Spec.Type] += p.Spec.GPUs * int(p.Spec.Max)
		}
	}
	return most
}

// fewest returns the fewest GPUs that a claim of job j may be given, and whether its speed by width is known.
func (r *Rates) fewest(v *sched.View, j sched.JobID) (gpus int32, known bool) {
	c, asked := r.claim(v, j), r.Unsaved.Widths(&v.Jobs[j])
	least, possible := c.Least()
	if !possible {
		least = int(asked.Want)
	}
	return int32(least), c.curve != nil || v.Jobs[j].Spec.GPUs.Min == v.Jobs[j].Spec.GPUs.Max
}
