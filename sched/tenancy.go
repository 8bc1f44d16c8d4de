package sched

import "slices"

// tenancy is which jobs have booked which GPU.
type tenancy struct {
	limit   int     // tenants a GPU may have
	tenants []int16 // by GPU: how many
	tenant  []JobID // limit places for each GPU, of which the first tenants[g] are taken, in order of JobID
}

func newTenancy(gpus, limit int) tenancy {
	return tenancy{limit: limit, tenants: make([]int16, gpus), tenant: make([]JobID, gpus*limit)}
}

// Owner returns the one job that has booked GPU g, or None if none or several have.
func (t *tenancy) Owner(g GPUID) JobID {
	if t.tenants[g] != 1 {
		return None
	}
	return t.tenant[int(g)*t.limit]
}

// Untaken reports whether no GPU of gpus has a tenant, usable or not: whether who left it can have it back.
func (t *tenancy) Untaken(gpus []GPUID) bool {
	for _, g := range gpus {
		if t.tenants[g] != 0 {
			return false
		}
	}
	return true
}

// enter makes job j a tenant of GPU g; false if there is no place.
func (t *tenancy) enter(j JobID, g int) bool {
	n := int(t.tenants[g])
	if n == t.limit {
		return false
	}
	all, i := t.find(j, g)
	copy(all[i+1:], all[i:n])
	all[i] = j
	t.tenants[g]++
	return true
}

// leave ends the tenancy of job j of GPU g; false if it is no tenant.
func (t *tenancy) leave(j JobID, g int) bool {
	n := int(t.tenants[g])
	all, i := t.find(j, g)
	if i == n || all[i] != j {
		return false
	}
	copy(all[i:], all[i+1:n])
	t.tenants[g]--
	return true
}

// enterAll makes job j the tenant of n GPUs from first on, which have none; a GPU may have one.
func (t *tenancy) enterAll(j JobID, first, n int) {
	tenant, tenants := t.tenant[first:first+n], t.tenants[first:first+n]
	for i := range tenant {
		tenant[i], tenants[i] = j, 1
	}
}

// leaveAll ends the tenancy of job j of n GPUs from first on; a GPU may have one. It is false, and nothing ends, if j
// is not the tenant of all.
func (t *tenancy) leaveAll(j JobID, first, n int) bool {
	tenant, tenants := t.tenant[first:first+n], t.tenants[first:first+n]
	for i := range tenant {
		if tenant[i] != j || tenants[i] != 1 {
			return false
		}
	}
	clear(tenants)
	return true
}

// find returns the places of GPU g, and which of them is that of job j, or would be.
func (t *tenancy) find(j JobID, g int) (all []JobID, i int) {
	all = t.tenant[g*t.limit : (g+1)*t.limit]
	for i < int(t.tenants[g]) && all[i] < j {
		i++
	}
	return all, i
}

// bookings is what each job has booked.
type bookings struct {
	place   []int32   // by job: its place in holders, from 1; 0 = it has booked nothing
	holders []JobID   // jobs that have booked something, in no particular order
	set     [][]GPUID // of holders
}

// Set returns what job j has booked, nil if nothing.
func (b *bookings) Set(j JobID) []GPUID {
	if int(j) < len(b.place) {
		if at := b.place[j]; at > 0 {
			return b.set[at-1]
		}
	}
	return nil
}

// Holders returns the jobs that have booked something, in no particular order. It is valid until the next change.
func (b *bookings) Holders() []JobID { return b.holders }

func (b *bookings) clear() {
	for _, j := range b.holders {
		b.place[j] = 0
	}
	clear(b.set)
	b.holders, b.set = b.holders[:0], b.set[:0]
}

// add notes what job j, which has nothing booked, books; so many jobs are expected.
func (b *bookings) add(j JobID, gpus []GPUID, jobs int) {
	if int(j) >= cap(b.place) {
		b.place = slices.Grow(b.place, max(jobs, int(j)+1)-len(b.place))
	}
	for int(j) >= len(b.place) {
		b.place = append(b.place, 0)
	}
	b.holders, b.set = append(b.holders, j), append(b.set, gpus)
	b.place[j] = int32(len(b.holders))
}

// remove takes job j, which has something booked, off.
func (b *bookings) remove(j JobID) {
	n, at := len(b.holders)-1, b.place[j]-1
	last := b.holders[n]
	b.holders[at], b.set[at] = last, b.set[n]
	b.place[last], b.place[j] = at+1, 0
	b.set[n] = nil
	b.holders, b.set = b.holders[:n], b.set[:n]
}
