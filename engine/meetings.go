package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// claims are who gives up and takes which GPU in an exchange where none is shared: then the tenants need not be counted
// off and on.
type claims struct {
	left, taken []uint32 // by GPU: the exchange in which it was given up, or taken, last
	exchange    uint32
}

// begin starts an exchange among so many GPUs.
func (c *claims) begin(gpus int) {
	if c.exchange++; c.exchange == 0 || len(c.left) < gpus {
		c.left, c.taken, c.exchange = make([]uint32, gpus), make([]uint32, gpus), 1
	}
}

// leave notes that set is given up.
func (c *claims) leave(set []sched.GPUID) {
	for _, g := range set {
		c.left[g] = c.exchange
	}
}

// conflict says which GPU of set cannot be had, or "".
func (c *claims) conflict(v *sched.View, set []sched.GPUID) string {
	for _, g := range set {
		if c.taken[g] == c.exchange || c.left[g] != c.exchange && v.GPUs[g].Targets > 0 {
			return fmt.Sprintf("GPU %d has 1 tenants already", g)
		}
	}
	return ""
}

// take notes that set, which can be had, is taken.
func (c *claims) take(set []sched.GPUID) {
	for _, g := range set {
		c.taken[g] = c.exchange
	}
}
