package pal

import (
	"math"

	"github.com/trainyard/trainyard/internal/mersenne"
)

// What the released simulator does after the last job of its trace.
const (
	wrapSeed = 1
	wrapRate = 2.0 // jobs per hour
)

// trace issues the jobs in order. If it wraps, it goes on with the same jobs for ever, with exponential gaps of mean
// half an hour, rounded up to a second, each counted from the arrival before.
type trace struct {
	jobs   []Job
	random *mersenne.Generator // nil: no wrap
	issued int
	ahead  *job // the next job to arrive, nil after the last
}

func newTrace(jobs []Job, wrap bool) *trace {
	t := &trace{jobs: jobs}
	if wrap {
		t.random = mersenne.New(wrapSeed)
	}
	t.advance()
	return t
}

// advance forgets the job ahead and makes the next one.
func (t *trace) advance() {
	last := t.ahead
	t.ahead = nil
	wraps := t.issued >= len(t.jobs)
	if len(t.jobs) == 0 || wraps && t.random == nil {
		return
	}
	j := newJob(t.jobs[t.issued%len(t.jobs)], t.issued)
	if wraps {
		j.Submit = last.Submit + int64(math.Ceil(-math.Log(1-t.random.Float64())/wrapRate*3600))
	}
	t.ahead = j
	t.issued++
}
