package watch

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/straggler"
	"github.com/trainyard/trainyard/model/variability"
	"github.com/trainyard/trainyard/sched"
)

// Stragglers finds GPUs that are slow now and keeps jobs from them.
//
//   - A check by the detector moves the GPU's factor, which multiplies its PM scores for all classes: a GPU that
//     throttles, or a host in trouble, is taken to be slow for everybody. Where a gang leaves several under suspicion
//     each has the factor in full, for a gang on any of them may wait for it; but suspicion alone makes nothing last,
//     and no quarantine.
//   - Two good checks in a row clear a GPU, one if it was only under suspicion. What lasts through many bad checks
//     fades slowly (variability.Tracker); all else within half an hour.
//   - A GPU that was more than 1.3 times as slow as expected in 2 of its last 3 checks goes into quarantine, for 30
//     minutes at first, if it is better not used at all: a slow GPU is still worth something where others wait. Then it
//     is used as any other. If it is as slow at the next check it goes back, and for twice as long if the last time is
//     less than a day ago, up to a day. No more than a quarter of the cluster is in quarantine at a time.
//
// Zero values mean the defaults. It is to be used by one system, and asked in Provision after it.
type Stragglers struct {
	sched.ByName

	// Expected is what is known to make the steps of job j longer on gpus, such as PM scores; nil = nothing.
	Expected func(v *sched.View, j sched.JobID, gpus []sched.GPUID) float64
	// Revise hears when factors change, with the factor of each GPU as it is to be known; nil = no one is.
	Revise func(factor func(g sched.GPUID) float64)
	// Weighs says that the system, informed by Revise, weighs itself whether a job should leave a GPU. Then a GPU goes
	// into quarantine only where it costs its gang more than a GPU. Others have their jobs moved, if they move jobs at
	// all, by taking the GPU away: there it goes as well when no one waits for GPUs.
	Weighs bool

	detector *straggler.Detector
	gpus     []watched
	names    []string // by NodeID: the machine the evidence is about
	steps    []progress
	odd      []sched.GPUID // whose factor is not 1, in order of first being so
	revision uint64
	fading   sched.Time // when factors are to be looked at again
}

// watched is what is known of a GPU.
type watched struct {
	tracker  *variability.Tracker // of it alone, in one class: factors over the PM scores
	reported int                  // its factor as reported, in steps
	isOdd    bool
	until    sched.Time    // in quarantine, or to go there, until then; 0 = not
	term     time.Duration // of its last quarantine; 0 = none yet
	lifted   sched.Time    // when it ended
	trial    bool          // nothing was found since
	good     int8          // checks in a row
	user     sched.JobID   // that came to it last; None = no one yet
	ours     bool          // the quarantine that the view shows is our request
}

// progress is what a job said last of its steps.
type progress struct {
	attempt int32
	steps   float64
	at      sched.Time
}

// Times and sizes, ours but for the rule of 1.3 in 2 of 3 checks, which is the Tracker's default.
const (
	firstTerm = 30 * time.Minute
	lastTerm  = 24 * time.Hour
	most      = 4 // at most one GPU in so many is in quarantine
	look      = time.Minute
	step      = 0.05 // factors are reported in steps of 5 %, and change only by more than 3/4 of one
)

// tracking: a factor within a step of the persistent one is noise, for the detector has separated noise from change
// already.
var tracking = variability.Params{Slack: 0.04}

var (
	_ sched.Observer = (*Stragglers)(nil)
	_ sched.Memory   = (*Stragglers)(nil)
)

// Observe learns from progress, and from where attempts start and end.
func (s *Stragglers) Observe(v *sched.View, e *sched.Event) {
	if s.detector == nil {
		s.detector, _ = straggler.New(straggler.Params{}) // defaults are no error
	}
	if len(s.gpus) != len(v.GPUs) {
		s.meet(v, e)
	}
	switch e.Kind {
	case sched.NodeJoined:
		s.joined(v, e.Node)
	case sched.AttemptStarted:
		s.started(v, e.Job, e.Time)
	case sched.Progressed:
		if x := s.stepOf(e); x > 0 {
			for _, c := range s.charged(v, s.detector.Report(e.Time, e.Job, x)) {
				s.take(v, e.Time, c)
			}
		}
	case sched.AttemptEnded:
		s.detector.End(e.Time, e.Job)
		if v.Jobs[e.Job].State == sched.Done {
			s.detector.Forget(e.Job)
		}
	}
	if e.Time >= s.fading {
		s.report(e.Time)
	}
}

// meet takes over what the view shows: new nodes, and at first all, with the attempts that run.
func (s *Stragglers) meet(v *sched.View, e *sched.Event) {
	first := len(s.gpus) == 0
	for n := range v.Nodes {
		s.joined(v, sched.NodeID(n))
	}
	for j := range v.Jobs {
		if first && v.Jobs[j].Attempt == sched.Running {
			s.started(v, sched.JobID(j), e.Time)
		}
	}
}

// joined gets to know the GPUs of a node. Another machine in its slot starts without a past.
func (s *Stragglers) joined(v *sched.View, n sched.NodeID) {
	node := &v.Nodes[n]
	s.detector.Node(n, max(node.Spec.Rack, 0), node.First, node.Spec.GPUs)
	for len(s.gpus) < len(v.GPUs) {
		t, _ := variability.NewTracker(1, 1, tracking)
		s.gpus = append(s.gpus, watched{tracker: t})
	}
	for int(n) >= len(s.names) {
		s.names = append(s.names, "")
	}
	if s.names[n] == node.Spec.Name {
		return
	}
	s.names[n] = node.Spec.Name
	for g := node.First; g < node.First+sched.GPUID(node.Spec.GPUs); g++ {
		x := &s.gpus[g]
		x.tracker.Drop(0)
		x.user = sched.None
		x.until, x.term, x.ours, x.trial, x.good = 0, 0, false, false, 0
	}
}

func (s *Stragglers) started(v *sched.View, id sched.JobID, now sched.Time) {
	j, nodes := &v.Jobs[id], int32(0)
	for i, g := range j.GPUs {
		s.gpus[g].user = id
		if i == 0 || v.GPUs[g].Node != v.GPUs[j.GPUs[i-1]].Node {
			nodes++
		}
	}
	expected := 1.0
	if s.Expected != nil {
		expected = s.Expected(v, id, j.GPUs)
	}
	s.detector.Begin(now, id, straggler.Kind{Model: j.Spec.Model, GPUs: int32(len(j.GPUs)), Nodes: nodes}, j.GPUs,
		expected)
}

// stepOf returns the time of a step by a report, 0 if it does not say: of a training step for jobs that count them,
// else of a unit of work.
func (s *Stragglers) stepOf(e *sched.Event) float64 {
	for int(e.Job) >= len(s.steps) {
		s.steps = append(s.steps, progress{})
	}
	p := &s.steps[e.Job]
	if !(e.Value > 0) {
		if p.steps > 0 || !(e.Rate > 0) {
			return 0
		}
		return 1 / e.Rate
	}
	was := *p
	*p = progress{e.Attempt, e.Value, e.Time}
	if was.attempt != e.Attempt || !(e.Value > was.steps) {
		return 0
	}
	return e.Time.Sub(was.at).Seconds() / (e.Value - was.steps)
}

// crowd is how many suspects are avoided together, whatever is free instead of them.
const crowd = 8

// charged returns the checks to be taken. Where more than a crowd are under suspicion, no one has as many other GPUs
// for the gang: then only as many are charged as are free and above suspicion, at least one, those first that are
// charged already. A gang that leaves these behind shows by its speed whether it was one of them.
func (s *Stragglers) charged(v *sched.View, checks []straggler.Check) []straggler.Check {
	if len(checks) <= crowd || checks[0].Share == 1 {
		return checks
	}
	free := 0
	for g := range v.GPUs {
		if x := &v.GPUs[g]; x.Holders == 0 && x.Targets == 0 && v.Usable(sched.GPUID(g)) && s.gpus[g].reported == 0 {
			free++
		}
	}
	slices.SortStableFunc(checks, func(a, b straggler.Check) int {
		return min(s.gpus[b.GPU].reported, 1) - min(s.gpus[a.GPU].reported, 1)
	})
	return checks[:max(1, min(len(checks), free))]
}

// take brings what a check says to the GPU it is about.
func (s *Stragglers) take(v *sched.View, now sched.Time, c straggler.Check) {
	x := &s.gpus[c.GPU]
	factor := max(variability.MinScore, min(variability.MaxScore, c.Factor))
	s.fading = now // say
	if !x.isOdd {
		x.isOdd = true
		s.odd = append(s.odd, c.GPU)
	}
	if c.Share < 1 {
		x.tracker.Suspect(0, 0, now, factor)
		return
	}
	if factor == 1 {
		x.pass(now)
		return
	}
	x.good = 0
	x.tracker.Check(0, 0, now, factor)
	if (x.tracker.Quarantined(0, 0) || x.trial && factor > Limit) && x.until == 0 && s.room(v) {
		if x.term = min(lastTerm, 2*x.term); x.term == 0 || now.Sub(x.lifted) > lastTerm {
			x.term = firstTerm
		}
		x.until, x.trial = now.Add(x.term), false
	}
}

// pass takes in a good check. One clears a GPU that was under suspicion, no more; two in a row all others.
func (x *watched) pass(now sched.Time) {
	x.good++
	if n, _ := x.tracker.Checks(0, 0); n > 0 && x.good < 2 {
		x.tracker.Check(0, 0, now, 1)
		return
	}
	x.tracker.Drop(0)
	x.good, x.until, x.trial = 0, 0, false
}

// room reports whether one more GPU may go into quarantine.
func (s *Stragglers) room(v *sched.View) bool {
	n := 1
	for _, g := range s.odd {
		if s.gpus[g].until > 0 {
			n++
		}
	}
	return n*most <= len(v.GPUs)
}

// say looks at the factors, which fade, and has them revised if one has changed enough.
func (s *Stragglers) report(now sched.Time) {
	s.fading = sched.Never
	changed, kept := false, s.odd[:0]
	for _, g := range s.odd {
		x := &s.gpus[g]
		exact := math.Log(x.tracker.Now(0, 0, now)) / math.Log1p(step)
		if math.Abs(exact-float64(x.reported)) > 0.75 {
			x.reported, changed = int(math.Round(exact)), true
		}
		x.isOdd = x.reported != 0 || x.until > 0 || x.ours || x.trial || x.tracker.Penalty(0, 0, now) > 0
		if x.isOdd {
			kept, s.fading = append(kept, g), now.Add(look)
		}
	}
	s.odd = kept
	if changed {
		s.revision++
		s.revise()
	}
}

func (s *Stragglers) revise() {
	if s.Revise != nil {
		s.Revise(s.Factor)
	}
}

// Factor returns how many times as slow as its PM scores say GPU g is taken to be.
func (s *Stragglers) Factor(g sched.GPUID) float64 {
	if int(g) >= len(s.gpus) {
		return 1
	}
	return math.Pow(1+step, float64(s.gpus[g].reported))
}

// Revision rises when factors change.
func (s *Stragglers) Revision() uint64 { return s.revision }

// Provision asks for quarantines and lifts those whose time is over. It leaves alone those that others requested.
func (s *Stragglers) Provision(v *sched.View, d *sched.Desired) {
	for _, g := range s.odd {
		x, gpu := &s.gpus[g], &v.GPUs[g]
		if x.until > 0 && x.until <= v.Now {
			x.until, x.lifted, x.trial = 0, v.Now, true
			x.tracker.Drop(0)
			s.fading = v.Now
		}
		switch {
		case x.until == 0 && x.ours:
			x.ours = false
			d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: g})
		case x.until > 0 && !x.ours && !gpu.Quarantined && s.worth(v, x):
			x.ours = true
			d.GPUTargets = append(d.GPUTargets, sched.GPUTarget{GPU: g, Quarantined: true})
		}
		if x.until > 0 {
			d.WakeBy(x.until)
		}
	}
}

// worth reports whether a GPU is better not used at all: it and those of its gang found as slow cost the gang more GPUs
// than they are. Unless the system weighs where to run, it also is while no one waits, for then it costs nothing.
func (s *Stragglers) worth(v *sched.View, x *watched) bool {
	if !s.Weighs && !slices.ContainsFunc(v.Jobs, waits) {
		return true
	}
	if x.user == sched.None || int(x.user) >= len(v.Jobs) {
		return false
	}
	gang, slow := v.Jobs[x.user].GPUs, 0
	for _, g := range gang {
		if s.gpus[g].until > 0 {
			slow++
		}
	}
	return float64(len(gang))*(1-1/x.tracker.Now(0, 0, v.Now)) > float64(max(slow, 1))
}

func waits(j sched.Job) bool { return j.State == sched.Waiting }
