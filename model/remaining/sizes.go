package remaining

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins"
	"github.com/trainyard/trainyard/sched"
)

// Sizes estimates what jobs have left from the sizes of those that ended and of those that run, in work: time on the
// GPUs they asked for, alone. Widening a job does not age it.
//
// A job belongs to the kinds of its user and name, its name, its model, its width, and to all. The chance to last of a
// kind is its own by n/(n+4), where n of it ended, and that of the next wider kind by the rest; below all is a prior of
// which half lasts a minute. What a job says of its steps comes before all that, and the wall time it states bounds it.
//
// What is asked is answered from laws that are made again only now and then, and for an age that is rounded down by at
// most 9 %, so that few answers have to be worked out. NewSizes is the only way to one.
type Sizes struct {
	sched.ByName

	said   *Estimator // what jobs say of their steps
	kinds  map[kind]*law
	order  []kind // of kinds, the oldest first
	all    law
	fresh  int        // jobs that ended since the laws were made
	made   sched.Time // when that was
	number uint64     // of the laws
	met    bool       // the jobs that were there before it heard of anything

	// What follows from the View and the laws.
	live  []sched.JobID // jobs that are not done, as of the last look; nil = to be found
	mixed map[[levels]*law]*mix
	of    []mixOf // by JobID
}

// How sizes are learned. All are ours.
const (
	levels    = 4                // kinds of a job in addition to all
	mostKinds = 4096             // the oldest are forgotten
	shrink    = 4                // n of a kind that weigh as much as its parent
	Cold      = time.Minute      // effective work of a job of which nothing is known, until it lasts longer
	grid      = 5 * time.Minute  // between new laws while jobs end
	slowGrid  = 60 * time.Minute // while none ends
	mostFresh = 64               // ends after which there are new laws at the latest
)

// Constants names the constants of sizes that are learned, with their values.
func Constants() string {
	return fmt.Sprintf("Levels:%d MostKinds:%d Shrink:%d Cold:%v Grid:%v SlowGrid:%v MostFresh:%d Window:%d", levels,
		mostKinds, shrink, Cold, grid, slowGrid, mostFresh, Window)
}

// kind is a group of jobs that are taken to be alike.
type kind struct {
	level int
	name  string
}

// law is what is known of a kind.
type law struct {
	ended   []float64 // number i is ended[i % (Window+mostFresh)]
	seen    int64     // ended so far
	count   int64     // seen when the laws were made
	running []float64 // work of those that were running then

	curve *dist.Censored // follows from the others; nil = to be made
}

// mix is the law of the jobs of equal kinds.
type mix struct {
	law  *dist.Censored // nil = nothing is known
	e, m []float64      // by age; 0 = to be worked out
}

// mixOf is the mix of a job as of some laws.
type mixOf struct {
	number uint64
	mix    *mix
}

// NewSizes returns a Sizes that has seen nothing.
func NewSizes() *Sizes { return &Sizes{said: New(), kinds: make(map[kind]*law)} }

var (
	_ sched.Observer = (*Sizes)(nil)
	_ sched.Memory   = (*Sizes)(nil)
)

// Observe learns of the sizes of jobs that finish, and makes new laws now and then.
func (s *Sizes) Observe(v *sched.View, e *sched.Event) {
	s.said.Observe(v, e)
	first := s.live == nil
	if first {
		s.find(v, e)
	}
	switch e.Kind {
	case sched.JobArrived:
		if !first {
			s.live = append(s.live, e.Job)
		}
	case sched.AttemptEnded:
		if e.Outcome == sched.Finished {
			s.finished(&v.Jobs[e.Job], e)
		}
	}
	since := v.Now.Sub(s.made)
	if s.fresh >= mostFresh || s.fresh > 0 && (since >= grid || s.number == 0) || s.number > 0 && since >= slowGrid {
		s.renew(v)
	}
}

// find notes who is not done, and, the first time, learns from who finished before the event.
func (s *Sizes) find(v *sched.View, e *sched.Event) {
	s.live = make([]sched.JobID, 0, len(v.Jobs))
	for id := range v.Jobs {
		now := e.Kind == sched.AttemptEnded && e.Job == sched.JobID(id)
		if j := &v.Jobs[id]; j.State != sched.Done {
			s.live = append(s.live, sched.JobID(id))
		} else if !s.met && j.Outcome == sched.Finished && !now {
			s.add(j, j.Work.Seconds())
		}
	}
	s.met = true
}

// finished learns of a job that has just finished.
func (s *Sizes) finished(j *sched.Job, e *sched.Event) {
	work := e.Work
	if work <= 0 && j.LastStart >= 0 {
		work = e.Happened().Sub(j.LastStart)
	}
	s.add(j, work.Seconds())
}

// add adds a size, in seconds, to the kinds of a job.
func (s *Sizes) add(j *sched.Job, size float64) {
	if !(size > 0) {
		return
	}
	s.fresh++
	s.all.add(size)
	for level, name := range kindsOf(j) {
		if name == "" {
			continue
		}
		k := kind{level, name}
		l := s.kinds[k]
		if l == nil {
			if len(s.order) == mostKinds {
				delete(s.kinds, s.order[0])
				s.order = append(s.order[:0], s.order[1:]...)
			}
			l = &law{}
			s.kinds[k], s.order = l, append(s.order, k)
		}
		l.add(size)
	}
}

// kindsOf names the kinds of a job, the narrowest first; "" = it has none.
func kindsOf(j *sched.Job) (names [levels]string) {
	spec := j.Spec
	if spec.Name != "" {
		names[1] = spec.Name
		if spec.User != "" {
			names[0] = spec.User + "\x00" + spec.Name
		}
	}
	names[2] = spec.Model
	names[3] = strconv.Itoa(int(j.Unit()))
	return names
}

// kept is how many sizes a law keeps: those it is made of, and those that came since.
const kept = Window + mostFresh

func (l *law) add(size float64) {
	if len(l.ended) < kept {
		l.ended = append(l.ended, size)
	} else {
		l.ended[l.seen%kept] = size
	}
	l.seen++
}

// renew makes new laws.
func (s *Sizes) renew(v *sched.View) {
	s.number, s.made, s.fresh, s.mixed = s.number+1, v.Now, 0, nil
	s.all.renew()
	for _, l := range s.kinds {
		l.renew()
	}
	s.live = slices.DeleteFunc(s.live, func(id sched.JobID) bool { return v.Jobs[id].State == sched.Done })
	for _, id := range s.live {
		j := &v.Jobs[id]
		done := j.WorkNow(v.Now).Seconds()
		if done <= 0 {
			continue
		}
		s.all.running = append(s.all.running, done)
		for level, name := range kindsOf(j) {
			if l := s.kinds[kind{level, name}]; l != nil {
				l.running = append(l.running, done)
			}
		}
	}
}

func (l *law) renew() { l.count, l.running, l.curve = l.seen, l.running[:0], nil }

// weight is what the law counts for over its parent.
func (l *law) weight() float64 {
	n := float64(min(l.count, Window))
	return n / (n + shrink)
}

// censored returns the distribution of the sizes of a kind.
func (l *law) censored() *dist.Censored {
	if l.curve == nil {
		var ended []float64
		for i := max(l.count-Window, 0); i < l.count; i++ {
			ended = append(ended, l.ended[i%kept])
		}
		l.curve = dist.KaplanMeier(ended, l.running)
	}
	return l.curve
}

// mixOf returns the law of job j.
func (s *Sizes) mixOf(v *sched.View, j sched.JobID) *mix {
	for int(j) >= len(s.of) {
		s.of = append(s.of, mixOf{})
	}
	if o := &s.of[j]; o.mix != nil && o.number == s.number {
		return o.mix
	}
	var laws [levels]*law
	for level, name := range kindsOf(&v.Jobs[j]) {
		if l := s.kinds[kind{level, name}]; l != nil && l.count > 0 {
			laws[level] = l
		}
	}
	m := s.mixed[laws]
	if m == nil {
		m = s.mix(laws)
		if s.mixed == nil {
			s.mixed = make(map[[levels]*law]*mix)
		}
		s.mixed[laws] = m
	}
	s.of[j] = mixOf{s.number, m}
	return m
}

// mix makes the law of the jobs of some kinds.
func (s *Sizes) mix(laws [levels]*law) *mix {
	if s.all.count == 0 {
		return &mix{}
	}
	rest := 1.0
	var parts []dist.Weighted
	for _, l := range append(laws[:], &s.all) {
		if l != nil {
			w := l.weight()
			parts = append(parts, dist.Weighted{Of: l.censored(), Weight: float64(rest * w)})
			rest = float64(rest * (1 - w))
		}
	}
	parts = append(parts, dist.Weighted{Of: prior, Weight: rest})
	return &mix{law: dist.Mixture(parts), e: make([]float64, len(ages)), m: make([]float64, len(ages))}
}

// prior is the size of a job of which nothing is known.
var prior = dist.Lomax(Cold.Seconds())

// ages are the seconds of work at which laws are asked: 0, then from a quarter of a minute on by 2^(1/8).
var ages = func() []float64 {
	list := []float64{0}
	for x := Cold.Seconds() / 4; x < longest.Seconds(); x = float64(x * 1.0905077326652577) {
		list = append(list, x)
	}
	return list
}()

// at returns what is left of a job of an age, in seconds.
func (m *mix) at(age float64) (effective, mean float64) {
	if m.law == nil {
		return max(age, Cold.Seconds()), max(age, Unknown.Seconds())
	}
	i := sort.Search(len(ages), func(i int) bool { return ages[i] > age }) - 1
	if m.e[i] == 0 {
		m.e[i] = gittins.Effective(m.law, ages[i])
		m.m[i] = m.law.Mean(ages[i])
		if ages[i] >= m.law.Longest() {
			m.e[i], m.m[i] = max(m.e[i], Cold.Seconds()), max(m.m[i], Cold.Seconds())
		}
		m.e[i] = max(m.e[i], math.SmallestNonzeroFloat64)
	}
	return m.e[i], m.m[i]
}

// Larger returns the chance that job j, which has done no work yet, takes more than so many seconds of work, by those
// of its kinds that ended and run alone; by the prior where none has ended.
func (s *Sizes) Larger(v *sched.View, j sched.JobID, size float64) float64 {
	of := s.mixOf(v, j).law
	if of == nil {
		of = prior
	}
	_, _, _, chance, _ := of.Beyond(size)
	return chance
}

// Assumed reports whether what job j has left is a guess: it says nothing of it, and no job has ended yet.
func (s *Sizes) Assumed(v *sched.View, j sched.JobID) bool {
	return !s.said.Sure(v, j) && v.Jobs[j].Spec.WallTime <= 0 && s.mixOf(v, j).law == nil
}

// Left returns the effective and the mean work that job j has left, in seconds.
func (s *Sizes) Left(v *sched.View, j sched.JobID) (effective, mean float64) {
	if left, ok := s.said.reported(v, j); ok {
		return left.Seconds(), left.Seconds()
	}
	job := &v.Jobs[j]
	done := max(job.WorkNow(v.Now), 0).Seconds()
	effective, mean = s.mixOf(v, j).at(done)
	if wall := job.Spec.WallTime.Seconds(); wall > done {
		effective, mean = min(effective, wall-done), min(mean, wall-done)
	}
	return effective, mean
}
