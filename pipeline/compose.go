package pipeline

import (
	"math"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/sched"
)

// Parts are what a Decider may be put together with. All of them hear every event, in the order of the fields; those
// that remember something (sched.Memory) are saved and loaded with it.
type Parts struct {
	// estimators that several stages read: they hear of an event before anybody decides on it
	Learn     []sched.Observer
	Provision []sched.Provisioner // asked in order, after the Decider, in each Decide
}

// Compose returns dec with its parts; dec itself if there are none.
func Compose(dec sched.Decider, p Parts) sched.Decider {
	if len(p.Learn)+len(p.Provision) == 0 {
		return dec
	}
	c := &composed{Decider: dec, provision: p.Provision, memories: []sched.Memory{dec}}
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
	memories      []sched.Memory // the Decider and the parts that remember something
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

// Observe notifies the estimators, then the Decider, then the other stages.
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

// Resume has the Decider and its parts take over the view.
func (c *composed) Resume(v *sched.View) {
	for _, m := range c.memories {
		if r, ok := m.(sched.Resumer); ok {
			r.Resume(v)
		}
	}
}

// Format names what is remembered in addition to the Decider and its parts, which have formats of their own.
func (c *composed) Format() string { return "parts/1" }

// SaveJob appends what the Decider and each part remember of job j.
func (c *composed) SaveJob(j sched.JobID, b []byte) []byte { return memory.AppendJob(b, j, c.memories) }

// SaveRest appends when it asked to be woken, and what they remember that belongs to no job.
func (c *composed) SaveRest(b []byte) []byte {
	return memory.AppendRest(memo.Int(memo.Bool(b, c.asked), int64(c.wake)), c.memories)
}

// Changed asks the Decider and each part.
func (c *composed) Changed(dst []sched.JobID) (list []sched.JobID, known bool) {
	return memory.Changed(dst, c.memories)
}

// LoadJob gives each what it saved of job j.
func (c *composed) LoadJob(j sched.JobID, b []byte) error {
	return memory.ReadJob(memo.NewReader(b), j, c.memories)
}

// LoadRest gives each what it saved that belongs to no job.
func (c *composed) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	c.asked, c.wake = r.Bool(), sched.Time(r.Int(0, math.MaxInt64))
	return memory.ReadRest(r, c.memories)
}
