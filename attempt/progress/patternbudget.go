package progress

import "time"

// Limits of what matching lines with a user's pattern takes.
const (
	// PatternTime is how much of each second of a clock a pattern may take of a processor.
	PatternTime = 100 * time.Millisecond
	// leastMatched is how many bytes of lines a pattern reads in that time at least. A slower one is dropped; where one
	// is as fast and does not keep up, the job writes more than is worth it: the rest of the second is passed over.
	leastMatched = 256 << 10
)

// budget is what a pattern takes of a processor. Without a clock for that it is not bounded.
type budget struct {
	cpu func() time.Duration // that the reading thread has taken

	since   time.Time // at which the second under way started
	spent   time.Duration
	matched int // bytes, in that second
	passing bool
	dropped bool
}

// next starts the next second if it is time.
func (b *budget) next(now time.Time) {
	if past := now.Sub(b.since); past >= time.Second {
		// what was taken too much counts for the seconds after it
		b.spent = max(b.spent-PatternTime*(past/time.Second), 0)
		b.since, b.matched = now, 0
	}
	b.passing = b.spent >= PatternTime
}

// count adds what the matching of a line took.
func (b *budget) count(took time.Duration, line int) {
	b.spent += took
	b.matched += line
	b.dropped = b.dropped || b.spent > PatternTime && b.matched < leastMatched
}

// Bound has the pattern take 100 ms of each second at most, by a clock of the processor time that the reading thread
// has taken. One that reads less than 256 KiB in that is dropped, within a line; beyond that lines of logs are passed
// over for the rest of the second.
func (r *Reader) Bound(cpu func() time.Duration) { r.budget.cpu = cpu }

// Dropped reports whether the pattern was too slow, and is no longer used.
func (r *Reader) Dropped() bool { return r.budget.dropped }

// Spent reports whether the pattern has taken all of its time for now.
func (r *Reader) Spent() bool {
	if r.match == nil || r.budget.cpu == nil || r.budget.dropped {
		return false
	}
	r.budget.next(time.Now())
	return r.budget.passing
}

// matchLine reads a line by the pattern.
func (r *Reader) matchLine(line []byte) Reading {
	b := &r.budget
	switch {
	case b.cpu == nil:
		return r.match.read(line)
	case b.dropped || b.passing:
		return Reading{}
	}
	before := b.cpu()
	m := r.match.read(line)
	b.count(b.cpu()-before, len(line))
	return m
}
