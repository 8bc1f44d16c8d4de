package device

import (
	"cmp"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Check finds out whether devices are free after a job on them has ended: no process of it shows there, and the memory
// that no one answers for is little. Where that takes longer than the patience, they are not to be given to others;
// later samples may free them (Watch). It has nothing to save: a check started again concludes the same.
type Check struct {
	rule     Rule
	deadline time.Time
	open     map[string]string // devices not yet free: why, as last seen
	found    map[string]Verdict
}

// NewCheck starts a check of devices at the time that the last process of the job was gone.
func NewCheck(rule Rule, names []string, at time.Time) *Check {
	c := &Check{rule: rule, deadline: at.Add(rule.Patience), open: make(map[string]string),
		found: make(map[string]Verdict)}
	for _, name := range names {
		c.open[name] = ""
	}
	return c
}

// See folds a sample taken after the check started, or the error at a time where there is none. Held are the devices on
// which other jobs are. It reports whether the check is over.
func (c *Check) See(s *Sample, err error, at time.Time, o Owners) bool {
	late := !at.Before(c.deadline)
	for name := range c.open {
		v := Verdict{State: sched.GPUStuck}
		r, there := read(s, name)
		switch {
		case err != nil:
			v.Why = cmp.Or(c.open[name], err.Error())
		case there:
			v = c.rule.judge(&r, o, r.Listed || !o.Held(name))
		case s.Partial:
			v.Why = cmp.Or(c.open[name], "it could not be looked at")
		default:
			v = Verdict{sched.GPUMissing, "it is not there"}
		}
		if v.State != sched.GPUStuck || late {
			delete(c.open, name)
			c.found[name] = v
			continue
		}
		if there {
			c.open[name] = v.Why
		}
	}
	return len(c.open) == 0
}

func read(s *Sample, name string) (r Reading, there bool) {
	if s != nil {
		r, there = s.Readings[name]
	}
	return r, there
}

// Found returns the devices that may not be used once the check is over, and why.
func (c *Check) Found() map[string]Verdict {
	bad := make(map[string]Verdict)
	for name, v := range c.found {
		if v.State == sched.GPUStuck {
			v.Why = fmt.Sprintf("%s, %v after the job on it ended", v.Why, c.rule.Patience)
		}
		if v.State != sched.GPUInUse {
			bad[name] = v
		}
	}
	return bad
}
