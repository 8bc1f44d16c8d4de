package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Rows of buckets behind those of the classes.
const (
	heldGPUs = int(Classes) + iota
	queueJobs
	queueGPUs
	seriesRows
)

// Losses says in which class GPUs were from the first arrival to the last event about a job that was not done. The
// classes sum to All exactly.
type Losses struct {
	From, To sched.Time
	All      Area // GPUs x time
	Held     Area // by attempts: the sum of Useful, Redone, ComingUp and Stopping
	By       [Classes]Area
	Users    []UserLosses // by Held, the largest first; ties by name
	Width    time.Duration
	Over     [Classes][]Area // by bucket of Width, from From on
}

// UserLosses is the part of the attempts of one user. On a GPU that is shared the attempt of the best class counts, of
// several the one that was ordered first.
type UserLosses struct {
	User string
	By   [Stopping + 1]Area // Useful, Redone, ComingUp, Stopping
}

// Held returns the GPUs x time that the attempts of the user held.
func (u *UserLosses) Held() (sum Area) {
	for _, a := range u.By {
		sum = sum.Plus(a)
	}
	return sum
}

// Losses returns the sums up to the last event about a job that was not done. Attempts under way are Useful so far. It
// changes nothing, and costs time in proportion to the attempts.
func (t *Timeline) Losses() *Losses { return t.LossesIn(t.first, t.end) }

// LossesIn returns the sums of a span of time, which is widened to where buckets start and end: From and To say so.
func (t *Timeline) LossesIn(from, to sched.Time) *Losses {
	if t.known == nil || to < t.first || from > t.end || from > to {
		return &Losses{From: t.first, To: t.end}
	}
	l := &Losses{Users: make([]UserLosses, t.users.Len()+1)}
	s := &sweep{t: t, l: l, over: t.known.clone()}
	width := s.over.width
	first := int(max(from, t.first).Sub(t.first) / width)
	l.From = t.first.Add(time.Duration(first) * width)
	last := int((min(to, t.end).Sub(t.first) + width - 1) / width)
	l.To = min(t.end, t.first.Add(time.Duration(last)*width))
	s.attempts()
	within := func(row int) []Area {
		list := s.over.rows[row]
		return list[min(first, len(list)):min(last, len(list))]
	}
	for c := range Classes {
		l.Over[c] = within(int(c))
		for _, a := range l.Over[c] {
			l.By[c] = l.By[c].Plus(a)
		}
		l.All = l.All.Plus(l.By[c])
	}
	for _, a := range within(heldGPUs) {
		l.Held = l.Held.Plus(a)
	}
	l.Width = width
	for i := range l.Users {
		l.Users[i].User = t.users.Name(int32(i))
	}
	l.Users = slices.DeleteFunc(l.Users, func(u UserLosses) bool { return u.Held() == Area{} })
	slices.SortFunc(l.Users, func(a, b UserLosses) int {
		x, y := a.Held(), b.Held()
		return cmp.Or(cmp.Compare(y.Sec, x.Sec), cmp.Compare(y.Nano, x.Nano), cmp.Compare(a.User, b.User))
	})
	return l
}

// sweep finds the classes of GPUs that attempts hold.
type sweep struct {
	t     *Timeline
	l     *Losses
	over  *buckets
	mixed [][]int32 // by GPU: the attempts that shared GPUs, in order
	edges []sched.Time
	// each takes all that is found, instead of the sums; nil = those are made
	each func(c Class, a *Attempt, from, to sched.Time, n int)
}

// attempts adds each attempt. Those that shared a GPU are looked at GPU by GPU.
func (s *sweep) attempts() {
	s.mixed = make([][]int32, len(s.t.on))
	for i := range s.t.Attempts {
		a := &s.t.Attempts[i]
		if a.Marks&Shared == 0 {
			s.addAlone(a, a.Width())
			continue
		}
		for _, r := range a.GPUs {
			for g := r.First; g < r.First+sched.GPUID(r.Count); g++ {
				s.mixed[g] = append(s.mixed[g], int32(i))
			}
		}
	}
	for _, list := range s.mixed {
		s.addMixed(list)
	}
}

// phases returns when an attempt was in which class: from at[c] to at[c+1] it was in order[c].
func (s *sweep) phases(a *Attempt) (at [5]sched.Time) {
	end := s.l.To
	if a.Ended != sched.None {
		end = min(end, a.Ended)
	}
	stop := a.stop(end)
	work := stop
	if a.Work != sched.None {
		work = min(a.Work, stop)
	}
	kept := stop
	if a.Kept != sched.None {
		kept = min(max(a.Kept, work), stop)
	}
	at = [5]sched.Time{a.Ordered, work, kept, stop, end}
	for i := range at {
		at[i] = max(at[i], s.l.From)
	}
	return at
}

// phaseOrder are the classes through which an attempt goes.
var phaseOrder = [4]Class{ComingUp, Useful, Redone, Stopping}

// addAlone adds n GPUs that no other attempt had at the same time.
func (s *sweep) addAlone(a *Attempt, n int) {
	at := s.phases(a)
	for i, c := range phaseOrder {
		s.add(c, a, at[i], at[i+1], n)
	}
}

func (s *sweep) add(c Class, a *Attempt, from, to sched.Time, n int) {
	if to <= from {
		return
	}
	if s.each != nil {
		s.each(c, a, from, to, n)
		return
	}
	s.over.add(int(c), from, to, n)
	u := &s.l.Users[s.t.jobs.user[a.Job]].By[c]
	*u = u.Plus(AreaOf(n, to.Sub(from)))
}

// addMixed adds one GPU, of whose attempts some overlap: between any two edges it is in the best class of theirs.
func (s *sweep) addMixed(list []int32) {
	for len(list) > 0 { // those that overlap, directly or by others
		k, until := 1, s.phases(&s.t.Attempts[list[0]])[4]
		for k < len(list) {
			at := s.phases(&s.t.Attempts[list[k]])
			if at[0] >= until {
				break
			}
			until = max(until, at[4])
			k++
		}
		s.addOverlap(list[:k])
		list = list[k:]
	}
}

func (s *sweep) addOverlap(list []int32) {
	if len(list) == 1 {
		s.addAlone(&s.t.Attempts[list[0]], 1)
		return
	}
	s.edges = s.edges[:0]
	for _, i := range list {
		at := s.phases(&s.t.Attempts[i])
		s.edges = append(s.edges, at[:]...)
	}
	slices.Sort(s.edges)
	s.edges = slices.Compact(s.edges)
	for k := 1; k < len(s.edges); k++ {
		from, to := s.edges[k-1], s.edges[k]
		best, whose := Classes, (*Attempt)(nil)
		for _, i := range list {
			at := s.phases(&s.t.Attempts[i])
			for p, c := range phaseOrder {
				if at[p] <= from && to <= at[p+1] && c < best {
					best, whose = c, &s.t.Attempts[i]
				}
			}
		}
		if whose != nil {
			s.add(best, whose, from, to, 1)
		}
	}
}

// Rename replaces the names of users in what t returns from here on.
func (t *Timeline) Rename(as func(user string) string) {
	var users sched.Names
	for id := range t.users.Len() {
		users.ID(as(t.users.Name(int32(id + 1))))
	}
	t.users = users
}
