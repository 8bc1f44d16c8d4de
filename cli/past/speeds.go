package past

import (
	"math"
	"slices"
	"time"

	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// speeds are how fast jobs run by their GPUs, and next to others, as fitted to a record: the work of a job per time is
// its own pace, times its width over its unit, times that of its kind on such a width, over the slow-down of its kind
// in such company. Each factor is what work was reported over what the other factors expect (iterative proportional
// fitting), with a few seconds of what is taken where nothing is known: speed in proportion to GPUs, and the generic
// slow-downs of model/interference.
type speeds struct {
	width map[atWidth]float64 // 1 = in proportion to GPUs
	slow  map[next]float64
	own   map[sched.JobID]float64 // pace of jobs; none = 1
	sets  interference.History    // slow, to look up what it lacks
	// looked up where nothing was seen
	unknown map[next]float64
	between map[atWidth]float64
}

type atWidth struct {
	kind  string
	width int
}

type next struct{ kind, company string }

const (
	priorSeconds = 5.0 // of what is taken where nothing is known
	fitRounds    = 200
	fitEnough    = 1e-5 // relative change of a factor
)

// fit returns the speeds that p shows; nil if all jobs ran alone on the GPUs in time on which their work is.
func (p *paces) fit() *speeds {
	s := &speeds{width: make(map[atWidth]float64), slow: make(map[next]float64), own: make(map[sched.JobID]float64),
		unknown: make(map[next]float64), between: make(map[atWidth]float64)}
	var several []sched.JobID
	plain := true
	for _, id := range p.ids() {
		j := p.jobs[id]
		for _, x := range j.spent {
			s.meet(j, x.way)
		}
		if j.plain() {
			continue
		}
		plain = false
		if j.inWork(); len(j.seen) > 0 && !j.fixed {
			several = append(several, id)
			s.own[id] = 1
		}
	}
	if plain {
		return nil
	}
	for range fitRounds {
		if s.improve(p, several) <= fitEnough {
			break
		}
	}
	s.remember()
	return s
}

// ids returns the jobs of p in order.
func (p *paces) ids() []sched.JobID {
	var list []sched.JobID
	for id := range p.jobs {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// inWork has the observations of a job be in work: of one that kept its width by its steps, where it says steps, for
// what a step is worth changes until the job's first pace is known; and by its epochs, where it finished.
func (j *paced) inWork() {
	one := j.oneWidth() && j.steps > 0 && j.work > 0
	for i := range j.seen {
		switch o := &j.seen[i]; {
		case o.epochs > 0 && j.epochs > 0:
			o.work = j.total * float64(o.epochs) / float64(j.epochs)
		case one && o.steps > 0:
			o.work = o.steps * j.work.Seconds() / j.steps
		}
	}
	j.seen = slices.DeleteFunc(j.seen, func(o observed) bool { return !(o.work > 0) })
}

// meet gives what nothing is known of its first values.
func (s *speeds) meet(j *paced, w way) {
	if at := (atWidth{j.kind, w.width}); s.width[at] == 0 && !j.fixed {
		s.width[at] = 1
	}
	if w.company != "" {
		s.slow[next{j.kind, w.company}] = generic(w.company)
	}
}

// rate returns the work per time of a job in a way, by its kind.
func (s *speeds) rate(j *paced, w way) float64 {
	r := float64(w.width) / float64(j.unit)
	if !j.fixed {
		r *= s.factor(j.kind, w.width)
	}
	return r / s.slowdown(j.kind, w.company)
}

// improve fits each factor once and returns the largest change.
func (s *speeds) improve(p *paces, list []sched.JobID) (change float64) {
	for _, id := range list {
		got, want := 0.0, 0.0
		for _, o := range p.jobs[id].seen {
			got += o.work
			want += s.expect(id, p.jobs[id], &o)
		}
		if want > 0 {
			s.own[id] *= got / want
			change = max(change, math.Abs(math.Log(got/want)))
		}
	}
	width, slow := make(map[atWidth]*sums), make(map[next]*sums)
	for _, id := range list {
		j := p.jobs[id]
		for _, o := range j.seen {
			ratio := o.work / s.expect(id, j, &o)
			for _, x := range o.in {
				part := s.own[id] * s.rate(j, x.way) * x.time.Seconds()
				add(width, atWidth{j.kind, x.way.width}, part*ratio, part)
				if x.way.company != "" {
					add(slow, next{j.kind, x.way.company}, part*ratio, part)
				}
			}
		}
	}
	for at, x := range width {
		change = max(change, refit(s.width, at, x, 1))
	}
	for n, x := range slow { // in slow-downs more work is less
		speed := map[next]float64{n: 1 / s.slow[n]}
		change = max(change, refit(speed, n, x, 1/generic(n.company)))
		s.slow[n] = 1 / speed[n]
	}
	return change
}

// sums are work reported and expected.
type sums struct{ got, want float64 }

func add[K comparable](to map[K]*sums, at K, got, want float64) {
	if to[at] == nil {
		to[at] = new(sums)
	}
	to[at].got += got
	to[at].want += want
}

// refit changes a factor halfway, as others change with it, to what x and a prior make of it, and returns by how much.
func refit[K comparable](factors map[K]float64, at K, x *sums, prior float64) float64 {
	was := factors[at]
	is := (x.got + priorSeconds*prior) / (x.want/was + priorSeconds)
	factors[at] = math.Sqrt(is * was)
	return math.Abs(math.Log(is / was))
}

// expect returns the work expected of what was observed of a job.
func (s *speeds) expect(id sched.JobID, j *paced, o *observed) (work float64) {
	for _, x := range o.in {
		work += s.own[id] * s.rate(j, x.way) * x.time.Seconds()
	}
	return work
}

// remember keeps the slow-downs as those of sets.
func (s *speeds) remember() {
	for n, slow := range s.slow {
		set := append([]string{n.kind}, kindsOf(n.company)...)
		if len(set) <= interference.MaxSet {
			_ = s.sets.RecordOne(interference.Place{}, set, 0, slow, 0) // cannot be refused: it has kinds
		}
	}
}

// slowdown returns how much longer a job of a kind takes in a company: as fitted, else by the part of it that was seen.
func (s *speeds) slowdown(kind, company string) float64 {
	if company == "" {
		return 1
	}
	n := next{kind, company}
	if slow, ok := s.slow[n]; ok {
		return slow
	}
	slow, ok := s.unknown[n]
	if !ok {
		set := []interference.Member{{Model: kind}}
		for _, k := range kindsOf(company) {
			set = append(set, interference.Member{Model: k})
		}
		slow = generic(company)
		if found, err := s.sets.Slowdowns(interference.Place{}, set, nil); err == nil {
			slow = found[0].Slow
		}
		s.unknown[n] = slow
	}
	return slow
}

// factor returns how fast a kind is on a width, 1 = in proportion to it: as fitted; between widths that were seen, and
// beyond, as a power of the width.
func (s *speeds) factor(kind string, width int) float64 {
	at := atWidth{kind, width}
	if f, ok := s.width[at]; ok {
		return f
	}
	if f, ok := s.between[at]; ok {
		return f
	}
	s.between[at] = s.interpolated(kind, width)
	return s.between[at]
}

func (s *speeds) interpolated(kind string, width int) float64 {
	var seen []int
	for at := range s.width {
		if at.kind == kind {
			seen = append(seen, at.width)
		}
	}
	if len(seen) == 0 {
		return 1
	}
	slices.Sort(seen)
	if len(seen) == 1 {
		return s.width[atWidth{kind, seen[0]}]
	}
	i, _ := slices.BinarySearch(seen, width)
	low, high := seen[min(max(i-1, 0), len(seen)-2)], 0
	if high = seen[min(max(i, 1), len(seen)-1)]; i == 0 || i == len(seen) {
		low, high = seen[0], seen[len(seen)-1]
	}
	from, to := s.width[atWidth{kind, low}], s.width[atWidth{kind, high}]
	power := math.Log(to/from) / math.Log(float64(high)/float64(low))
	if i == len(seen) {
		low, from = high, to
	}
	return from * math.Pow(float64(width)/float64(low), min(max(power, -1), 0))
}

// unit returns the work per time that job id does alone on the GPUs in time on which its work is: 1 but for jobs whose
// first pace was measured elsewhere.
func (s *speeds) unitOf(id sched.JobID, j *paced) float64 {
	own, ok := s.own[id]
	if !ok || !(own > 0) {
		return 1
	}
	return own * s.factor(j.kind, j.unit)
}

// work returns the work of a job, as measured, in time alone on its unit. Of a job that never reported any it is what
// its last attempt took.
func (s *speeds) work(id sched.JobID, j *paced, measured time.Duration, says bool) time.Duration {
	if says {
		return sched.ScaleDuration(measured, 1/s.unitOf(id, j))
	}
	took, could := s.sum(j, j.attempt)
	if took <= 0 {
		return measured
	}
	return sched.ScaleDuration(measured, could.Seconds()/took.Seconds())
}

// sum returns the time of stretches of a job, and the work that it could do in them, in time alone on its unit.
func (s *speeds) sum(j *paced, list []stretch) (took, could time.Duration) {
	base := 1.0
	if !j.fixed {
		base = s.factor(j.kind, j.unit)
	}
	for _, x := range list {
		took += x.time
		could += sched.ScaleDuration(x.time, s.rate(j, x.way)/base)
	}
	return took, could
}

// startUp returns what each start of a job has cost it, by its work in time alone on its unit.
func (s *speeds) startUp(j *paced, work time.Duration) time.Duration {
	took, could := s.sum(j, j.spent)
	if could <= 0 || j.starts == 0 {
		return 0
	}
	return sched.ScaleDuration(max(could-work, 0), took.Seconds()/could.Seconds()/float64(j.starts))
}

// onGPUs returns the work per time of a job of a trace alone on so many GPUs, 1 on those that it asks for.
func (s *speeds) onGPUs(j *trace.Job, gpus int) float64 {
	wants := int(j.Spec.GPUs.Want)
	r := float64(gpus) / float64(wants)
	if j.Spec.Batch.Max > 0 || gpus == wants {
		return r
	}
	kind := kindOf(&j.Spec)
	return r * s.factor(kind, gpus) / s.factor(kind, wants)
}

// nextTo returns how much longer a job of a trace takes next to others; 1 if no jobs were seen to share GPUs.
func (s *speeds) nextTo(j *trace.Job, others []*trace.Job) float64 {
	if len(s.slow) == 0 {
		return 1
	}
	kinds := make([]string, 0, len(others))
	for _, o := range others {
		kinds = append(kinds, kindOf(&o.Spec))
	}
	return s.slowdown(kindOf(&j.Spec), companyOf(kinds))
}
