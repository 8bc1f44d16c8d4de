package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/sched"
)

// Memory is all that a Decider remembers, as Save wrote it: each job's share, and the rest.
type Memory struct {
	Jobs [][]byte // by JobID; empty = nothing
	Rest []byte   // all that belongs to no job
}

// SaveMemory saves what dec remembers of the jobs of v. It is to be called between two batches.
func SaveMemory(v *sched.View, dec sched.Memory) Memory {
	m := Memory{Jobs: make([][]byte, len(v.Jobs)), Rest: dec.SaveRest(nil)}
	for j := range m.Jobs {
		m.Jobs[j] = dec.SaveJob(sched.JobID(j), nil)
	}
	return m
}

// Load gives m to dec, which must be new: made alike, and told nothing yet. v is the view of the moment at which m was
// saved. Jobs of which nothing was saved are left out.
func (m Memory) Load(v *sched.View, dec sched.Memory) error {
	for j, b := range m.Jobs {
		if len(b) == 0 {
			continue
		}
		if err := dec.LoadJob(sched.JobID(j), b); err != nil {
			return fmt.Errorf("job %d: %w", j, err)
		}
	}
	if err := dec.LoadRest(m.Rest); err != nil {
		return err
	}
	if r, ok := dec.(sched.Resumer); ok {
		r.Resume(v)
	}
	return nil
}
