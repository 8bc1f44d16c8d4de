package engine

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Memory is all that a Decider remembers, as Save wrote it: each job's share, and the rest. Each part of it bears the name and
// version of its format.
type Memory struct {
	Jobs [][]byte // by JobID; empty = nothing
	Rest []byte   // all that belongs to no job
}

// SaveMemory saves what dec remembers of the jobs of v. It is to be called between two batches.
func SaveMemory(v *sched.View, dec sched.Memory) Memory {
	all := []sched.Memory{dec}
	m := Memory{Jobs: make([][]byte, len(v.Jobs)), Rest: saveRest(nil, all)}
	for j := range m.Jobs {
		m.Jobs[j] = saveJob(nil, sched.JobID(j), all)
	}
	return m
}

// Load gives m to dec, which must be new: made alike, and told nothing yet. v is the view of the moment at which m was
// saved. Jobs of which nothing was saved are left out. Memory of another version, or of a system made of other parts, is an
// error that names the part, what was found and what was wanted.
func (m Memory) Load(v *sched.View, dec sched.Memory) error {
	all := []sched.Memory{dec}
	for j, b := range m.Jobs {
		if len(b) == 0 {
			continue
		}
		if err := loadJob(memo.NewReader(b), sched.JobID(j), all); err != nil {
			return fmt.Errorf("engine: memory of job %d: %w", j, err)
		}
	}
	if err := loadRest(memo.NewReader(m.Rest), all); err != nil {
		return fmt.Errorf("engine: memory: %w", err)
	}
	if r, ok := dec.(sched.Resumer); ok {
		r.Resume(v)
	}
	return nil
}
