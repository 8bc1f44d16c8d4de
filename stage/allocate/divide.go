package allocate

import (
	"slices"

	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Rule divides GPUs of one type.
type Rule interface {
	// Divide appends the width of each claim to dst, 0 = it gets none. Claims are in order of rank; they may be
	// changed.
	Divide(v *sched.View, dst []int, claims []Claim, gpus int) []int
}

// Divide has a Rule divide the GPUs of each type among those that take part: first who holds GPUs of the type, and
// stays on it, then who waits, each on the acceptable type with most left beyond the fewest GPUs of those before it.
// GPUs are taken to be alike whatever node they are on.
//
// With Admits, the fewest GPUs of a job alone decide whether it takes part, down one list for all types, and no one who
// holds GPUs is left without; see elastic.Mode. Without, all take part and Rule may give a job nothing. Where there are
// classes, see ByClass, the fewest GPUs of the higher come first.
//
// A job whose fewest GPUs no type could ever have is rejected in mode Drop, and else passed over without holding up
// others. No more than elastic.MaxJobs take part on a type, the first of them.
type Divide struct {
	Rates  *Rates
	Rule   Rule
	Admits bool
	Mode   elastic.Mode

	classes classes

	claims [][]Claim // by type
	free   []int     // by type: GPUs left beyond the fewest of all that take part
	most   []int     // by type: GPUs there can ever be
	widths []int
	typeOf types
}

var (
	_ sched.Allocator = (*Divide)(nil)
	_ sched.Narrowest = (*Divide)(nil)
)

// Allocate appends the grants: those who hold GPUs first, then newcomers, both in the order of ranks.
func (a *Divide) Allocate(v *sched.View, room []int32, order []sched.JobID, d *sched.Desired,
	dst []sched.Grant) []sched.Grant {
	a.begin(v, room)
	if a.gives() {
		order = a.classes.arrange(v, order)
	} else {
		for rank, j := range order {
			a.hold(v, rank, j)
		}
	}
	a.admit(v, order, d)
	from := len(dst)
	for t, claims := range a.claims {
		slices.SortFunc(claims, func(x, y Claim) int { return x.rank - y.rank })
		gpus := max(int(room[t]), 0) // where those of some who hold them are not to be used any more, it is less
		if !a.Admits {
			a.classes.mark(v, a.Rule, claims, gpus)
		}
		a.widths = a.Rule.Divide(v, a.widths[:0], claims, gpus)
		for i, width := range a.widths {
			if width > 0 {
				a.Rates.watch(v, &claims[i], d)
				dst = append(dst, a.grant(v, &claims[i], width, sched.TypeID(t)))
			}
		}
	}
	slices.SortStableFunc(dst[from:], func(x, y sched.Grant) int { return came(v, x.Job) - came(v, y.Job) })
	return dst
}

// came orders those who hold GPUs before newcomers.
func came(v *sched.View, j sched.JobID) int {
	if len(v.Jobs[j].Target) > 0 {
		return 0
	}
	return 1
}

// begin empties the lists.
func (a *Divide) begin(v *sched.View, room []int32) {
	for len(a.claims) < len(room) {
		a.claims = append(a.claims, nil)
	}
	a.claims, a.free, a.most = a.claims[:len(room)], a.free[:0], mostOf(v, len(room), a.most[:0])
	for t := range room {
		a.claims[t] = a.claims[t][:0]
		a.free = append(a.free, int(room[t]))
	}
}

// enter has a job take part on a type, if its fewest GPUs are left there or none need be.
func (a *Divide) enter(rank int, c Claim, t int) bool {
	least, ok := c.Least()
	if !ok || a.Admits && least > a.free[t] || len(a.claims[t]) == elastic.MaxJobs {
		return false
	}
	a.free[t] -= least
	c.rank = rank
	a.claims[t] = append(a.claims[t], c)
	return true
}

// hold has a job take part that holds GPUs.
func (a *Divide) hold(v *sched.View, rank int, j sched.JobID) {
	if job := &v.Jobs[j]; len(job.Target) > 0 {
		a.enter(rank, a.Rates.claim(v, j), int(typeOf(v, job)))
	}
}

// gives reports whether who holds GPUs may be left without for those of a higher class, as far as Admits decides it.
func (a *Divide) gives() bool { return a.Admits && a.classes.take }

// admit goes through those who wait, in the order of ranks; where who holds GPUs may be left without, through all.
func (a *Divide) admit(v *sched.View, order []sched.JobID, d *sched.Desired) {
	queued := false // all behind it wait
	for rank, j := range order {
		job := &v.Jobs[j]
		if len(job.Target) > 0 || queued {
			if a.gives() {
				a.hold(v, rank, j)
			}
			continue
		}
		c := a.Rates.claim(v, j)
		least, possible := c.Least()
		t := a.roomiest(job.Spec.Types)
		hopeless := !possible || !a.ever(job.Spec.Types, least)
		switch {
		case !hopeless && t >= 0 && a.enter(rank, c, t):
		case a.Admits && a.Mode == elastic.Drop && job.Attempts == 0:
			d.Reject = append(d.Reject, sched.Reject{Job: j, Why: a.reason(hopeless, least, t)})
		case a.Admits && a.Mode == elastic.Queue && !hopeless:
			queued = true
		}
	}
}

// reason says why a job is rejected: for want of its fewest GPUs, or, where no width that was looked at is possible, of
// one more than those.
func (a *Divide) reason(hopeless bool, least, t int) sched.Reason {
	if hopeless {
		return sched.Reason{Code: sched.WhyTooWide, A: float64(least), B: float64(slices.Max(a.most))}
	}
	free := 0
	if t >= 0 {
		free = a.free[t]
	}
	return sched.Reason{Code: sched.WhyNoRoom, A: float64(least), B: float64(free)}
}

// roomiest returns the acceptable type with most left, the first of several, -1 if there is none.
func (a *Divide) roomiest(types sched.TypeSet) int {
	best := -1
	for t, free := range a.free {
		if types.Has(sched.TypeID(t)) && (best < 0 || free > a.free[best]) {
			best = t
		}
	}
	return best
}

// ever reports whether some acceptable type could have so many GPUs.
func (a *Divide) ever(types sched.TypeSet, least int) bool {
	for t, most := range a.most {
		if types.Has(sched.TypeID(t)) && most >= least {
			return true
		}
	}
	return false
}

// grant turns a width into a grant of a type.
func (a *Divide) grant(v *sched.View, c *Claim, width int, t sched.TypeID) sched.Grant {
	a.typeOf.set(c.ID, t)
	return a.Rates.grant(v, c, width)
}

// Least returns the fewest GPUs that a claim of job j may be given, and whether its speed by width is known.
func (a *Divide) Least(v *sched.View, j sched.JobID) (gpus int32, known bool) {
	return a.Rates.fewest(v, j)
}

// Holds reports whether others wait for job j to be admitted: in mode Queue they do, unless it never could be.
func (a *Divide) Holds(v *sched.View, j sched.JobID) bool {
	c := a.Rates.claim(v, j)
	least, possible := c.Least()
	return a.Admits && a.Mode == elastic.Queue && possible && a.ever(v.Jobs[j].Spec.Types, least)
}

// TypeOf returns the type on which job j was last granted GPUs; false if it never was.
func (a *Divide) TypeOf(j sched.JobID) (sched.TypeID, bool) { return a.typeOf.of(j) }
