package sched

// changes is which nodes changed lately.
type changes struct {
	followed bool     // Changes has been called
	changed  []NodeID // nodes whose free GPUs changed: changes number since, since+1, ...
	since    int
}

// maxChanges is how many changes are remembered. Who is further behind had better look at the whole cluster.
const maxChanges = 1 << 12

// Changes returns the nodes whose free GPUs changed from change number from on, some of them several times, and the
// number of the next change; 0 is before the first. It reports false where it no longer knows them: look at all nodes.
// The nodes are valid until the ledger changes.
func (c *changes) Changes(from int) (nodes []NodeID, next int, known bool) {
	next, known = c.since+len(c.changed), c.followed && from >= c.since
	c.followed = true
	if !known {
		return nil, next, false
	}
	return c.changed[from-c.since:], next, true
}

func (c *changes) note(n NodeID) {
	if !c.followed {
		return
	}
	if len(c.changed) == maxChanges {
		c.forget()
	}
	c.changed = append(c.changed, n)
}

// forget has no caller know the changes so far.
func (c *changes) forget() { c.since, c.changed = c.since+len(c.changed)+1, c.changed[:0] }
