package engine

import (
	"encoding/binary"
	"errors"

	"github.com/trainyard/trainyard/sched"
)

// Parts are what a Decider may be put together with. All of them hear every event, in the order of the fields; those that
// remember something (sched.Memory) are saved and loaded with it.
type Parts struct {
	Learn     []sched.Observer    // estimators that several stages read: they hear of an event before anybody decides on it
	Provision []sched.Provisioner // asked in order, after the Decider, in each Decide
}

// Compose returns dec with its parts; dec itself if there are none.
func Compose(dec sched.Decider, p Parts) sched.Decider {
	if len(p.Learn)+len(p.Provision) == 0 {
		return dec
	}
	c := &composed{Decider: dec, provision: p.Provision}
	for _, l := range p.Learn {
		c.before = append(c.before, l)
		c.remember(l)
	}
	for _, s := range p.Provision {
		if o, ok := s.(sched.Observer); ok {
			c.after = append(c.after, o)
		}
		c.remember(s)
	}
	return c
}

// composed is a Decider with parts.
type composed struct {
	sched.Decider
	before, after []sched.Observer
	provision     []sched.Provisioner
	memories      []sched.Memory // of the parts
	asked         bool           // it has decided
	wake          sched.Time     // and asked to be woken then
}

var (
	_ sched.Resumer = (*composed)(nil)
	_ sched.Waker   = (*composed)(nil)
)

func (c *composed) remember(part any) {
	if m, ok := part.(sched.Memory); ok {
		c.memories = append(c.memories, m)
	}
}

// Observe tells the estimators, then the Decider, then the other stages.
func (c *composed) Observe(v *sched.View, e *sched.Event) {
	for _, o := range c.before {
		o.Observe(v, e)
	}
	c.Decider.Observe(v, e)
	for _, o := range c.after {
		o.Observe(v, e)
	}
}

// Decide asks the Decider, then the stages of provision.
func (c *composed) Decide(v *sched.View, d *sched.Desired) {
	c.Decider.Decide(v, d)
	for _, s := range c.provision {
		s.Provision(v, d)
	}
	c.asked, c.wake = true, d.Wake
}

// Waits returns when it asked last to be woken.
func (c *composed) Waits() (until sched.Time, known bool) { return c.wake, c.asked }

// Resume has the Decider take over the view.
func (c *composed) Resume(v *sched.View) {
	if r, ok := c.Decider.(sched.Resumer); ok {
		r.Resume(v)
	}
}

// SaveJob appends what the Decider and each part remember of job j, each behind its length.
func (c *composed) SaveJob(j sched.JobID, b []byte) []byte {
	b = appendPart(b, c.Decider.SaveJob(j, nil))
	for _, m := range c.memories {
		b = appendPart(b, m.SaveJob(j, nil))
	}
	return b
}

// SaveRest appends what they remember beside.
func (c *composed) SaveRest(b []byte) []byte {
	wake := []byte(nil)
	if c.asked {
		wake = binary.AppendUvarint(nil, uint64(c.wake))
	}
	b = appendPart(b, wake)
	b = appendPart(b, c.Decider.SaveRest(nil))
	for _, m := range c.memories {
		b = appendPart(b, m.SaveRest(nil))
	}
	return b
}

// LoadJob gives each what it saved of job j.
func (c *composed) LoadJob(j sched.JobID, b []byte) error {
	load := func(m sched.Memory) func([]byte) error {
		return func(part []byte) error {
			if len(part) == 0 {
				return nil // nothing was remembered of the job
			}
			return m.LoadJob(j, part)
		}
	}
	loads := []func([]byte) error{load(c.Decider)}
	for _, m := range c.memories {
		loads = append(loads, load(m))
	}
	return loadParts(b, loads)
}

// LoadRest gives each what it saved beside.
func (c *composed) LoadRest(b []byte) error {
	loads := []func([]byte) error{c.loadWake, c.Decider.LoadRest}
	for _, m := range c.memories {
		loads = append(loads, m.LoadRest)
	}
	return loadParts(b, loads)
}

func (c *composed) loadWake(b []byte) error {
	if c.asked = len(b) > 0; !c.asked {
		return nil
	}
	wake, n := binary.Uvarint(b)
	if n != len(b) {
		return errMemory
	}
	c.wake = sched.Time(wake)
	return nil
}

// loadParts gives each its part of b, which must hold no more.
func loadParts(b []byte, loads []func([]byte) error) error {
	for _, load := range loads {
		part, rest, err := cutPart(b)
		if err != nil {
			return err
		}
		if err := load(part); err != nil {
			return err
		}
		b = rest
	}
	if len(b) != 0 {
		return errors.New("engine: memory is longer than what its parts wrote")
	}
	return nil
}
