package timeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Cause is why work was lost: what ended the attempt that did it.
type Cause uint8

// Causes.
const (
	ForOthers Cause = iota // it was stopped, moved or resized for others, or lost work that it said it had saved
	ByUser                 // its user had it stopped
	ByFailure              // it failed
	ByNode                 // its node was lost
	Causes
)

var causeWords = [Causes]string{"stopped-for-others", "stopped-by-user", "failed", "node-lost"}

// String returns the word of a cause, as documents have it.
func (c Cause) String() string { return causeWords[c] }

// UsageRow is what jobs have used that are alike in all that a table is by. By sums to the GPUs x time that their
// attempts held; on a GPU that attempts share one of them counts, as in UserLosses.
type UsageRow struct {
	Key    UsageKey
	Jobs   int                // that held GPUs or waited
	By     [Stopping + 1]Area // Useful, Redone, ComingUp, Stopping
	Redone [Causes]Area       // By[Redone] by cause
	Wait   time.Duration      // in which jobs that were not done held nothing
	Shares []Share            // of jobs that held GPUs, for what is known by job alone
}

// Held returns the GPUs x time that the attempts of the row held.
func (r *UsageRow) Held() (sum Area) {
	for _, a := range r.By {
		sum = sum.Plus(a)
	}
	return sum
}

// Share is which part of all that a job ever held is in a row. A GPU that attempts share counts for each of them.
type Share struct {
	Job         sched.JobID
	Held, Whole Area
}

// Of returns the part of x, 0 to x.
func (s Share) Of(x float64) float64 {
	if s.Held == s.Whole {
		return x
	}
	return x * (s.Held.Hours() / s.Whole.Hours())
}

// UsageKey is what the jobs of a row have in common; "" and None where a table is not by that.
type UsageKey struct {
	Day                time.Duration // 1 + its start, after time 0; 0 = the table is not by day
	User, Group, Model string
	Job                sched.JobID
}

// UsageBy says what a table is by.
type UsageBy struct {
	User, Group, Model, Job bool
	From, To                sched.Time                             // nothing outside counts
	Day                     func(sched.Time) (from, to sched.Time) // the day of a time; nil = not by day
	Finish                  func(sched.JobID) sched.Time           // when a job was done; None = it is not
}

// UsageOf returns what jobs of t used up to the last event about a job that was not done, in rows in the order in which
// they are first met, job after job. It changes nothing, and costs time in proportion to the attempts and the days that
// they took.
func UsageOf(t *Timeline, by UsageBy) []UsageRow {
	u := &usage{t: t, by: by, at: make(map[rowKey]int32), whole: make([]Area, len(t.Jobs)),
		latest: make([]int32, len(t.Jobs)), places: make(map[place]int32)}
	u.group()
	u.waits()
	u.holds()
	s := &sweep{t: t, l: &Losses{From: t.first, To: t.end}, each: u.add}
	if t.known != nil {
		s.attempts()
	}
	for p := range u.parts {
		x := &u.parts[p]
		r := &u.rows[x.row]
		if r.Jobs++; x.held != (Area{}) {
			r.Shares = append(r.Shares, Share{x.job, x.held, u.whole[x.job]})
		}
	}
	return u.rows
}

// usage is a table being made.
type usage struct {
	t      *Timeline
	by     UsageBy
	groups []UsageKey // what jobs have in common for all time
	of     []int32    // by job: its place in groups
	at     map[rowKey]int32
	rows   []UsageRow
	whole  []Area  // by job: all that its attempts held, from the start of the log on
	latest []int32 // by job: 1 + where in parts it was seen last; 0 = nowhere
	places map[place]int32
	parts  []part

	day, next sched.Time // the day that was asked for last; next = 0: none was
}

// rowKey is a row, in short.
type rowKey struct {
	group int32
	day   sched.Time
}

// place is a job in a row.
type place struct {
	row int32
	job sched.JobID
}

// part is what a job held in a row, each attempt by itself.
type part struct {
	place
	held Area
}

// group finds what jobs have in common for all time.
func (u *usage) group() {
	known := make(map[UsageKey]int32)
	u.of = make([]int32, len(u.t.Jobs))
	for id := range u.t.Jobs {
		j, k := &u.t.Jobs[id], UsageKey{Job: sched.None}
		if u.by.User {
			k.User = j.User
		}
		if u.by.Group {
			k.Group = j.Group
		}
		if u.by.Model {
			k.Model = j.Model
		}
		if u.by.Job {
			k.Job = sched.JobID(id)
		}
		n, has := known[k]
		if !has {
			n = int32(len(u.groups))
			known[k], u.groups = n, append(u.groups, k)
		}
		u.of[id] = n
	}
}

// row returns the row of a job at a time, and when it ends.
func (u *usage) row(id sched.JobID, at sched.Time) (row int32, end sched.Time) {
	k := rowKey{group: u.of[id]}
	end = sched.Never
	if u.by.Day != nil {
		if at < u.day || at >= u.next {
			u.day, u.next = u.by.Day(at)
		}
		k.day, end = u.day, u.next
	}
	row, known := u.at[k]
	if !known {
		key := u.groups[k.group]
		if u.by.Day != nil {
			key.Day = time.Duration(u.day) + 1
		}
		row = int32(len(u.rows))
		u.at[k], u.rows = row, append(u.rows, UsageRow{Key: key})
	}
	return row, end
}

// part returns the part of a job in a row.
func (u *usage) part(row int32, id sched.JobID) *part {
	at := place{row, id}
	if n := u.latest[id]; n > 0 && u.parts[n-1].place == at {
		return &u.parts[n-1]
	}
	n, known := u.places[at]
	if !known {
		n = int32(len(u.parts))
		u.places[at], u.parts = n, append(u.parts, part{place: at})
	}
	u.latest[id] = n + 1
	return &u.parts[n]
}

// cut gives each row its part of a time of a job.
func (u *usage) cut(id sched.JobID, from, to sched.Time, give func(r *UsageRow, p *part, d time.Duration)) {
	to = min(to, u.by.To, u.t.end)
	for from = max(from, u.by.From); from < to; {
		row, end := u.row(id, from)
		end = min(end, to)
		p := u.part(row, id)
		give(&u.rows[row], p, end.Sub(from))
		from = end
	}
}

// waits adds the times in which jobs that were not done held nothing.
func (u *usage) waits() {
	free := make([]sched.Time, len(u.t.Jobs)) // since when each holds nothing
	for id := range u.t.Jobs {
		free[id] = u.t.Jobs[id].Submit
	}
	wait := func(id sched.JobID, to sched.Time) {
		u.cut(id, free[id], to, func(r *UsageRow, _ *part, d time.Duration) { r.Wait += d })
	}
	for i := range u.t.Attempts {
		a := &u.t.Attempts[i]
		wait(a.Job, a.Ordered)
		if free[a.Job] = sched.Never; a.Ended != sched.None {
			free[a.Job] = a.Ended
		}
	}
	for id := range u.t.Jobs {
		end := sched.Never
		if at := u.by.Finish(sched.JobID(id)); at != sched.None {
			end = at
		}
		wait(sched.JobID(id), end)
	}
}

// holds adds what attempts held, each by itself.
func (u *usage) holds() {
	for i := range u.t.Attempts {
		a := &u.t.Attempts[i]
		from, end, width := max(a.Ordered, u.t.first), u.t.end, a.Width()
		if a.Ended != sched.None {
			end = min(end, a.Ended)
		}
		if end <= from {
			continue
		}
		u.whole[a.Job] = u.whole[a.Job].Plus(AreaOf(width, end.Sub(from)))
		u.cut(a.Job, from, end, func(_ *UsageRow, p *part, d time.Duration) {
			p.held = p.held.Plus(AreaOf(width, d))
		})
	}
}

// add is what a sweep finds.
func (u *usage) add(c Class, a *Attempt, from, to sched.Time, n int) {
	u.cut(a.Job, from, to, func(r *UsageRow, _ *part, d time.Duration) {
		area := AreaOf(n, d)
		r.By[c] = r.By[c].Plus(area)
		if c == Redone {
			why := cause(a)
			r.Redone[why] = r.Redone[why].Plus(area)
		}
	})
}

// cause returns why work of an attempt was lost.
func cause(a *Attempt) Cause {
	switch {
	case a.Outcome == sched.Failed:
		return ByFailure
	case a.Outcome == sched.NodeLost:
		return ByNode
	case a.Outcome == sched.Cancelled, a.byUser:
		return ByUser
	}
	return ForOthers
}
