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
	m := Memory{Jobs: make([][]byte, len(v.Jobs)), Rest: SaveRest(dec)}
	for j := range m.Jobs {
		m.Jobs[j] = SaveJob(dec, sched.JobID(j))
	}
	return m
}

// SaveJob saves the share of job j in what dec remembers: an element of Memory.Jobs. It is to be called as SaveMemory is.
func SaveJob(dec sched.Memory, j sched.JobID) []byte { return saveJob(nil, j, []sched.Memory{dec}) }

// SaveRest saves what dec remembers that belongs to no job: Memory.Rest. It is to be called as SaveMemory is.
func SaveRest(dec sched.Memory) []byte { return saveRest(nil, []sched.Memory{dec}) }

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
