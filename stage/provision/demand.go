package provision

import "github.com/trainyard/trainyard/sched"

// Demand says how many GPUs all jobs together want now. It adds them to sum, by type; what any type serves stands
// behind the last type, so that len(sum) = types+1.
type Demand interface {
	Demand(v *sched.View, sum []int32)
}

// Asked is the demand of all jobs that hold GPUs or may be given some: what each wants, or else asks for, but no more
// in all than Most GPUs (0 = no limit), counted by arrival. A job that is wider than can ever be had is passed over,
// and so is one that its user's limit keeps from GPUs: what is rented for it would stay idle.
type Asked struct {
	Present
	Most    int32
	Narrows bool  // jobs may be given as few GPUs as their Min; else all start with what they ask for
	PerUser int32 // GPUs that one user may hold at a time; 0 = any number

	reach reach
	users map[string]int32 // GPUs wanted for each, where PerUser > 0
}

var _ Demand = (*Asked)(nil)

// Demand adds up over the jobs.
func (a *Asked) Demand(v *sched.View, sum []int32) {
	left := a.Most
	a.reach.look(v, len(sum)-1)
	a.held(v)
	for _, id := range a.Jobs(v) {
		j := &v.Jobs[id]
		if !j.Eligible() {
			continue
		}
		n := max(j.Want, int32(len(j.Target)))
		if n == 0 {
			n = j.Spec.GPUs.Want
		}
		if len(j.Target) == 0 && !a.reach.has(j, a.least(j), a.Most) {
			continue
		}
		if a.PerUser > 0 && len(j.Target) == 0 {
			room := a.PerUser - a.users[j.Spec.User]
			if room < min(n, a.least(j)) {
				continue
			}
			n = min(n, room)
			a.users[j.Spec.User] += n
		}
		if a.Most > 0 {
			n = min(n, left)
			left -= n
		}
		sum[slot(v, j, len(sum)-1)] += n
	}
}

// held notes how many GPUs users hold, or are to hold.
func (a *Asked) held(v *sched.View) {
	if a.PerUser == 0 {
		return
	}
	if a.users == nil {
		a.users = make(map[string]int32)
	}
	clear(a.users)
	for _, id := range a.Jobs(v) {
		if j := &v.Jobs[id]; len(j.Target) > 0 {
			a.users[j.Spec.User] += int32(len(j.Target))
		}
	}
}

// least returns the fewest GPUs that j is started with.
func (a *Asked) least(j *sched.Job) int32 {
	if a.Narrows {
		return j.Spec.GPUs.Min
	}
	return j.Spec.GPUs.Want
}

// Always is a demand of so many GPUs of any type at all times: a static reservation.
type Always struct{ GPUs int32 }

var _ Demand = Always{}

// Demand is GPUs.
func (a Always) Demand(_ *sched.View, sum []int32) { sum[len(sum)-1] += a.GPUs }

// Reported is a demand of as many GPUs of any type as it returns.
type Reported func() int32

var _ Demand = Reported(nil)

// Demand is what f returns.
func (f Reported) Demand(_ *sched.View, sum []int32) { sum[len(sum)-1] += f() }

// slot returns the type that job j must have, if there is but one of those that there are; else types.
func slot(v *sched.View, j *sched.Job, types int) int {
	if len(j.Target) > 0 {
		return int(v.Nodes[v.GPUs[j.Target[0]].Node].Spec.Type)
	}
	only := types
	for t := range types {
		if j.Spec.Types.Has(sched.TypeID(t)) {
			if only < types {
				return types
			}
			only = t
		}
	}
	return only
}
