package sched

// Tenants returns the jobs that have booked GPU g, in order of JobID. It is valid until the next change.
func (t *tenancy) Tenants(g GPUID) []JobID {
	return t.tenant[int(g)*t.limit:][:t.tenants[g]]
}
