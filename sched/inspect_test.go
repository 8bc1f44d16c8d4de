package sched

// Tenants returns the jobs that have booked GPU g, in order of JobID. It is valid until the next change.
func (t *tenancy) Tenants(g GPUID) []JobID {
	return t.tenant[int(g)*t.limit:][:t.tenants[g]]
}

// NodesWith returns how many nodes of type t have exactly f free GPUs.
func (b typeBooks) NodesWith(t TypeID, f int) int {
	if f >= len(b[t].count) {
		return 0
	}
	return int(b[t].count[f])
}
