package trace

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// source makes the jobs of a generator one by one. What does not change while it does is shared by copies.
type source struct {
	g       Generator
	quantum time.Duration
	mix     []Width
	widths  picker
	users   picker
	groups  picker
	names   []string // of users
	endings endings
	tide    *tide // nil = a Poisson process

	clock  clock
	shapes *rand.Rand // widths, durations, models, users
	labels *rand.Rand // groups and states: a stream of their own, so that they change nothing else
	last   shape      // of the job before
	copies float64    // probability that a job in a burst has the width of the one before it other than by chance
}

// shape is what a job asks for.
type shape struct {
	width    int     // number in the mix; -1 = none yet
	duration float64 // seconds
}

// draft is a job before it is written down. Numbers are those of the generator's lists.
type draft struct {
	submit, duration          time.Duration
	width                     int
	model, user, group, state int
}

func newSource(g Generator) *source {
	if err := g.Validate(); err != nil {
		panic("trace: generate: " + err.Error())
	}
	s := &source{g: g, quantum: g.Quantum, mix: g.mix()}
	if s.quantum == 0 {
		s.quantum = time.Millisecond
	}
	s.widths = newPicker(len(s.mix), func(i int) float64 { return s.mix[i].Share })
	s.users = newPicker(g.Users, g.UserLaw.weight)
	s.names = make([]string, g.Users)
	for i := range s.names {
		s.names[i] = "u" + strconv.Itoa(i)
	}
	s.groups = newPicker(len(g.Groups), func(i int) float64 { return g.Groups[i].Weight })
	s.endings, _ = newEndings(g) // validated
	if g.Profile != nil && g.Profile.Bursts != nil {
		s.copies = g.Profile.Bursts.copying(s.widths.twice())
	}
	if g.Profile != nil {
		s.tide = newTide(*g.Profile, g.Seed, 1/g.MeanGap())
		if g.loaded() || g.Span > 0 {
			s.tide.fit(g.Jobs, g.MeanGap()*float64(g.Jobs))
		}
	}
	return s
}

// begin sets the clock and all random sources to their start.
func (s *source) begin() {
	s.shapes, s.labels = stream(s.g.Seed, 2), stream(s.g.Seed, 4)
	s.last.width = -1
	if s.tide == nil {
		s.clock = &steady{random: stream(s.g.Seed, 1), gap: s.g.MeanGap()}
		return
	}
	t := *s.tide
	t.begin()
	s.clock = &t
}

// next draws the next job.
func (s *source) next(d *draft) {
	at, b := s.clock.next()
	s.last = s.shape(b)
	d.submit = roundTo(at, s.quantum)
	d.width, d.duration = s.last.width, roundTo(s.last.duration, s.quantum)
	if n := len(s.g.Models); n > 0 {
		d.model = s.shapes.IntN(n)
	}
	if b == nil || !b.begun {
		s.submitter(d)
	} else {
		d.user, d.group = b.user, b.group
	}
	if len(s.g.States) > 0 {
		d.state = s.endings.pick(s.labels, float64(s.mix[d.width].GPUs)*s.last.duration)
	}
	if b != nil {
		b.begun, b.last, b.user, b.group = true, s.last, d.user, d.group
	}
}

// submitter draws who submits a job, or a burst of them.
func (s *source) submitter(d *draft) {
	if s.g.Users > 0 {
		d.user = s.users.pick(s.shapes)
	}
	if len(s.g.Groups) > 0 {
		d.group = s.groups.pick(s.labels)
	}
}

// shape draws what the next job asks for: within a burst often what the job before it in the burst did, else at times
// what the last job did.
func (s *source) shape(b *burst) shape {
	switch {
	case b != nil && b.begun:
		switch u := s.shapes.Float64(); {
		case u < s.tide.Bursts.SameDuration:
			return s.near(b.last)
		case u < s.copies:
			return s.fresh(b.last.width)
		}
	case s.g.Repeat > 0 && s.last.width >= 0 && s.shapes.Float64() < s.g.Repeat:
		return s.near(s.last)
	}
	return s.fresh(s.widths.pick(s.shapes))
}

func (s *source) fresh(width int) shape {
	return shape{width, s.mix[width].Durations.Draw(s.shapes)}
}

// nearly is by how much the logarithms of two durations called the same may differ.
const nearly = 0.1

func (s *source) near(x shape) shape {
	x.duration *= math.Exp(nearly * (2*s.shapes.Float64() - 1))
	return x
}

// job writes a draft down.
func (s *source) job(name string, d *draft) Job {
	j := Job{Duration: d.duration}
	j.Spec = sched.JobSpec{Name: name, Submit: sched.Time(d.submit), GPUs: sched.Rigid(s.mix[d.width].GPUs)}
	if len(s.g.Models) > 0 {
		j.Spec.Model = s.g.Models[d.model]
	}
	if s.g.Users > 0 {
		j.Spec.User = s.names[d.user]
	}
	if len(s.g.Groups) > 0 {
		j.Spec.Group = s.g.Groups[d.group].Name
	}
	if len(s.g.States) > 0 {
		j.State = s.g.States[d.state].Name
	}
	return j
}
