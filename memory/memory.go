// Package memory saves and loads what Deciders remember: each job's share apart, and the rest. Every part bears the
// name and version of its format, so that memory of another version, or of a system made of other parts, is refused and
// never misread.
//
// The package deliberately does not know where memory is kept: in the header of a log, or with the objects of a
// cluster.
package memory

import (
	"fmt"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/sched"
)

// Memory is all that a Decider remembers, as Save wrote it: each job's share, and the rest. Each part of it bears the
// name and version of its format.
type Memory struct {
	Jobs [][]byte // by JobID; empty = nothing
	Rest []byte   // all that belongs to no job
}

// Save saves what dec remembers of the jobs of v. It is to be called between two batches.
func Save(v *sched.View, dec sched.Memory) Memory {
	m := Memory{Jobs: make([][]byte, len(v.Jobs)), Rest: SaveRest(dec)}
	for j := range m.Jobs {
		m.Jobs[j] = SaveJob(dec, sched.JobID(j))
	}
	return m
}

// SaveJob saves the share of job j in what dec remembers: an element of Memory.Jobs. It is to be called as Save is.
func SaveJob(dec sched.Memory, j sched.JobID) []byte { return AppendJob(nil, j, []sched.Memory{dec}) }

// SaveRest saves what dec remembers that belongs to no job: Memory.Rest. It is to be called as Save is.
func SaveRest(dec sched.Memory) []byte { return AppendRest(nil, []sched.Memory{dec}) }

// Changed appends the jobs of which ms may remember something else than when this was asked last; see sched.Changer.
// Each of ms is asked, as it may keep a list until it is.
func Changed(dst []sched.JobID, ms []sched.Memory) (list []sched.JobID, known bool) {
	known = true
	for _, m := range ms {
		c, is := m.(sched.Changer)
		if is {
			dst, is = c.Changed(dst)
		}
		known = known && is
	}
	return dst, known
}

// Load gives m to dec, which must be new: made alike, and must have seen nothing yet. v is the view of the moment at
// which m was saved. Jobs of which nothing was saved are left out. Memory of another version, or of a system made of
// other parts, is an error that names the part, what was found and what was wanted.
func (m Memory) Load(v *sched.View, dec sched.Memory) error {
	all := []sched.Memory{dec}
	for j, b := range m.Jobs {
		if len(b) == 0 {
			continue
		}
		if err := ReadJob(memo.NewReader(b), sched.JobID(j), all); err != nil {
			return fmt.Errorf("engine: memory of job %d: %w", j, err)
		}
	}
	if err := ReadRest(memo.NewReader(m.Rest), all); err != nil {
		return fmt.Errorf("engine: memory: %w", err)
	}
	if r, ok := dec.(sched.Resumer); ok {
		r.Resume(v)
	}
	return nil
}

// AppendJob appends what each of ms remembers of job j, behind the name of its format; of one that remembers nothing,
// nothing.
func AppendJob(b []byte, j sched.JobID, ms []sched.Memory) []byte {
	for _, m := range ms {
		if part := m.SaveJob(j, nil); len(part) > 0 {
			b = memo.Part(b, m.Format(), part)
		} else {
			b = memo.NoPart(b)
		}
	}
	return b
}

// AppendRest appends what each of ms remembers that belongs to no job, behind the name of its format.
func AppendRest(b []byte, ms []sched.Memory) []byte {
	for _, m := range ms {
		b = memo.Part(b, m.Format(), m.SaveRest(nil))
	}
	return b
}

// ReadJob gives each of ms what AppendJob wrote of job j for it, if it did, and wants nothing behind that.
func ReadJob(r *memo.Reader, j sched.JobID, ms []sched.Memory) error {
	for _, m := range ms {
		part, ok := r.Part(m.Format())
		if !ok {
			continue
		}
		if err := m.LoadJob(j, part); err != nil {
			return formatError(m, err)
		}
	}
	return r.EndParts()
}

// ReadRest gives each of ms what AppendRest wrote for it, and wants nothing behind that.
func ReadRest(r *memo.Reader, ms []sched.Memory) error {
	for _, m := range ms {
		part, ok := r.Part(m.Format())
		if r.Want(ok, "found no memory, want that of %s", m.Format()); !ok {
			return r.Err()
		}
		if err := m.LoadRest(part); err != nil {
			return formatError(m, err)
		}
	}
	return r.EndParts()
}

func formatError(m sched.Memory, err error) error { return fmt.Errorf("%s: %w", m.Format(), err) }
