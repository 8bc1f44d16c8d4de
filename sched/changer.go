package sched

// Changes lists the jobs of which something else may be remembered, once it was asked for: a simulation does not ask.
type Changes struct {
	asked bool
	list  []JobID
	in    []bool // by JobID: it is in list
}

// Note notes a job.
func (c *Changes) Note(id JobID) {
	if !c.asked {
		return
	}
	for int(id) >= len(c.in) {
		c.in = append(c.in, false)
	}
	if !c.in[id] {
		c.in[id] = true
		c.list = append(c.list, id)
	}
}

// Changed appends the list to dst, and empties it. It is that of a Changer.
func (c *Changes) Changed(dst []JobID) (list []JobID, known bool) {
	for _, id := range c.list {
		c.in[id] = false
	}
	dst, c.list = append(dst, c.list...), c.list[:0]
	known, c.asked = c.asked, true
	return dst, known
}
