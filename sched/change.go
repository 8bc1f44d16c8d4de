package sched

import (
	"fmt"
	"time"
)

// JobChange is what the user of a job may change after it was submitted, all of it as it is to be from now on. Fields
// mean what they mean in JobSpec.
type JobChange struct {
	GPUs     Range
	Priority int32
	WallTime time.Duration
	Deadline Time
	Spec     *JobSpec // all else as it is to be; who it is, when it came and what it waits for stay. nil = as it is
}

// Validate returns the first thing wrong with c: field, value, what is wanted.
func (c *JobChange) Validate() error {
	switch {
	case c.GPUs.Min < 1:
		return fmt.Errorf("gpus %d, want > 0", c.GPUs.Min)
	case c.GPUs.Want < c.GPUs.Min || c.GPUs.Max < c.GPUs.Want:
		return fmt.Errorf("gpus %d..%d with default %d, want min <= default <= max", c.GPUs.Min, c.GPUs.Max,
			c.GPUs.Want)
	case c.WallTime < 0:
		return fmt.Errorf("wall time %v, want >= 0", c.WallTime)
	case c.Deadline < 0:
		return fmt.Errorf("deadline %v, want >= 0", c.Deadline)
	case c.Spec != nil:
		return c.Spec.Validate()
	}
	return nil
}

// Change returns what may be changed of s, as it is: a JobChange starts with it.
func (s *JobSpec) Change() JobChange {
	return JobChange{GPUs: s.GPUs, Priority: s.Priority, WallTime: s.WallTime, Deadline: s.Deadline}
}

// Changed returns s with c applied, as a copy: others may hold s, which is immutable.
func (s *JobSpec) Changed(c *JobChange) *JobSpec {
	t := *s
	if c.Spec != nil {
		t = *c.Spec
		t.Name, t.User, t.Submit, t.NotBef, t.Key = s.Name, s.User, s.Submit, s.NotBef, s.Key
		t.After, t.Ties = s.After, s.Ties
	}
	t.GPUs, t.Priority, t.WallTime, t.Deadline = c.GPUs, c.Priority, c.WallTime, c.Deadline
	return &t
}
