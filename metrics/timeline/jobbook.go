package timeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// jobs is what is known of jobs. One that is done has but its numbers.
type jobs struct {
	at     []int32 // by job: its place in live; -1 = it is done
	user   []int32 // by job: number of its user
	live   []*live
	spare  []int32 // places in live that are free
	again  []*live // that were dropped, to be used again: mostAgain at most
	undone int     // jobs that are not done
	arena  []Run
}

// live is what is known of an attempt under way, or of its job.
type live struct {
	index    int // in attempts; -1 = none
	done     bool
	job      Job           // where there are old ones
	own      []int32       // likewise: its attempts
	base     time.Duration // work with which the attempt started
	work     time.Duration // as last reported, at from
	from     sched.Time
	rate     float64
	given    sched.Reason // of its latest decision
	decision uint64       // the number of that event; 0 = none was seen
	claims   []int32      // earlier attempts whose work is said to be kept
	marked   []sched.GPUID
	group    group
	waits    bool
	unsettle bool // it is to hold other GPUs than it does
}

// of returns what is known of a job; nil = it is done.
func (b *jobs) of(id sched.JobID) *live {
	if at := b.at[id]; at >= 0 {
		return b.live[at]
	}
	return nil
}

// add notes the next job, of a user. It returns nil if it is done.
func (b *jobs) add(user int32, done bool) *live {
	b.user = append(b.user, user)
	if done {
		b.at = append(b.at, -1)
		return nil
	}
	b.undone++
	place := b.take()
	b.at = append(b.at, place)
	return b.live[place]
}

// reopen takes a job up again that was dropped. It stays done.
func (b *jobs) reopen(id sched.JobID) {
	place := b.take()
	b.at[id], b.live[place].done = place, true
}

// take returns a place in live, with nothing known there.
func (b *jobs) take() int32 {
	l := new(live)
	if n := len(b.again); n > 0 {
		l, b.again = b.again[n-1], b.again[:n-1]
	}
	l.index = -1
	if n := len(b.spare); n > 0 {
		place := b.spare[n-1]
		b.spare = b.spare[:n-1]
		b.live[place] = l
		return place
	}
	b.live = append(b.live, l)
	return int32(len(b.live) - 1)
}

// over reports whether a job is done and nothing is open of it.
func (l *live) over() bool {
	return l.done && l.index < 0 && len(l.marked) == 0 && !l.waits && !l.unsettle
}

// mostAgain is for how many dropped ones room is kept.
const mostAgain = 1 << 8

// drop forgets a job that is over.
func (b *jobs) drop(id sched.JobID) {
	place := b.at[id]
	if l := b.live[place]; len(b.again) < mostAgain {
		*l = live{}
		b.again = append(b.again, l)
	}
	b.live[place] = nil
	b.spare = append(b.spare, place)
	b.at[id] = -1
}
