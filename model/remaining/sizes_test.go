package remaining_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins"
	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
)

// people are jobs that a Sizes hears of.
type people struct {
	v sched.View
	s *remaining.Sizes
}

// arrive adds a job that runs and has done some seconds of work.
func (p *people) arrive(spec sched.JobSpec, done float64) sched.JobID {
	id := sched.JobID(len(p.v.Jobs))
	p.v.Jobs = append(p.v.Jobs, sched.Job{Spec: &spec, State: sched.Active, Attempt: sched.Running,
		Work: sched.Seconds(done), WorkFrom: p.v.Now})
	p.s.Observe(&p.v, &sched.Event{Time: p.v.Now, Kind: sched.JobArrived, Job: id, Spec: &spec})
	return id
}

// finish ends job id with so much work.
func (p *people) finish(id sched.JobID, work float64) {
	j := &p.v.Jobs[id]
	j.State, j.Attempt, j.Outcome, j.Work = sched.Done, sched.Ended, sched.Finished, sched.Seconds(work)
	p.s.Observe(&p.v, &sched.Event{Time: p.v.Now, Kind: sched.AttemptEnded, Job: id, Outcome: sched.Finished,
		Work: j.Work})
}

// later has time go by, and is heard.
func (p *people) later(d time.Duration) {
	p.v.Now = p.v.Now.Add(d)
	p.s.Observe(&p.v, &sched.Event{Time: p.v.Now, Kind: sched.Ticked})
}

func gang(name, user string, gpus int) sched.JobSpec {
	return sched.JobSpec{Name: name, User: user, GPUs: sched.Rigid(gpus)}
}

// Ensure that nothing known is a minute, then as long as so far, and that what is known is mixed by kinds, with those
// that run counted as longer than they have run.
func TestSizesByKinds(t *testing.T) {
	p := &people{s: remaining.NewSizes()}
	spec := gang("train", "ann", 2)
	for _, c := range [][2]float64{{0, 60}, {59, 60}, {3600, 3600}} {
		if e, _ := p.s.Left(&p.v, p.arrive(spec, c[0])); e != c[1] {
			t.Errorf("after %v s: %v s left, want %v", c[0], e, c[1])
		}
	}
	p = &people{s: remaining.NewSizes()}
	other := p.arrive(gang("other", "bob", 1), 40)
	for range 4 {
		p.finish(p.arrive(spec, 0), 100)
	}
	p.later(time.Hour) // laws are made
	law := func(part float64) float64 {
		cut, sure := dist.KaplanMeier([]float64{100, 100, 100, 100}, []float64{40}), 1-part
		return gittins.Effective(dist.Mixture([]dist.Weighted{{Of: cut, Weight: sure},
			{Of: dist.Lomax(60), Weight: part}}), 0)
	}
	e, m := p.s.Left(&p.v, p.arrive(spec, 0))
	if want := law(1. / 16); math.Abs(e-want) > 0.01*want || !(m >= e) { // four kinds, a half each
		t.Errorf("%v s left, mean %v, want %v", e, m, want)
	}
	cut := dist.KaplanMeier([]float64{100, 100, 100, 100}, []float64{40})
	for size, known := range map[float64]float64{0: 1, 99: 1, 100: 0, 1e4: 0} {
		_, _, _, unknown, _ := dist.Lomax(60).Beyond(size)
		got, want := p.s.Larger(&p.v, p.arrive(spec, 0), size), 15./16*known+unknown/16
		if _, _, _, chance, _ := cut.Beyond(size); chance != known || math.Abs(got-want) > 1e-12 {
			t.Errorf("larger than %v s with %v, of those that ended with %v; want %v, %v", size, got, chance, want,
				known)
		}
	}
	p.v.Jobs[other].Work = 0
	if e, want := left(p, other), law(1./2); math.Abs(e-want) > 0.01*want { // of all alone
		t.Errorf("%v s left of another kind, want %v", e, want)
	}
	bounded := spec
	bounded.WallTime = 10 * time.Second
	if e := left(p, p.arrive(bounded, 0)); e != 10 {
		t.Errorf("%v s left of one that states ten", e)
	}
}

func left(p *people, j sched.JobID) float64 {
	e, _ := p.s.Left(&p.v, j)
	return e
}

// Ensure that kinds separate short jobs from long ones: where names do, most estimates are within a factor of two.
func TestSizesLearnNames(t *testing.T) {
	p, r := &people{s: remaining.NewSizes()}, rand.New(rand.NewPCG(1, 1))
	near, all := 0, 0
	for i := range 3000 {
		kind := r.IntN(9)
		size := 60 * math.Exp2(float64(kind)) * math.Exp(0.1*r.NormFloat64())
		id := p.arrive(gang(fmt.Sprint("job", kind), fmt.Sprint("user", r.IntN(3)), 1+kind%2), 0)
		if e := left(p, id); i > 1000 {
			if all++; e < 2*size && e > size/2 {
				near++
			}
		}
		p.finish(id, size)
		p.later(time.Minute)
	}
	if near*10 < all*9 {
		t.Errorf("%d of %d estimates within a factor of two", near, all)
	}
}

// Ensure that memory saved and loaded at any time answers as if nothing had happened, also of jobs to come, and that
// estimates are finite whatever is reported.
func TestSizesAreRemembered(t *testing.T) {
	p, r := &people{s: remaining.NewSizes()}, rand.New(rand.NewPCG(2, 2))
	var open []sched.JobID
	for i := range 2000 {
		switch {
		case len(open) > 0 && r.IntN(2) == 0:
			at := r.IntN(len(open))
			p.finish(open[at], math.Exp(8*r.NormFloat64())*float64(r.IntN(20))) // some of no size
			open[at] = open[len(open)-1]
			open = open[:len(open)-1]
		case r.IntN(3) > 0:
			id := p.arrive(gang(fmt.Sprint(r.IntN(5)), fmt.Sprint(r.IntN(5)), 1+r.IntN(4)), 1e4*r.Float64())
			open = append(open, id)
		default:
			p.later(time.Duration(r.IntN(2000)) * time.Second)
		}
		if i%50 == 0 {
			next := remaining.NewSizes()
			if err := memory.Save(&p.v, p.s).Load(&p.v, next); err != nil {
				t.Fatal(err)
			}
			for _, id := range open {
				e, m := p.s.Left(&p.v, id)
				e2, m2 := next.Left(&p.v, id)
				if e != e2 || m != m2 || !(e > 0 && e < 1e12 && m > 0 && m < 1e12) {
					t.Fatalf("step %d: %v and %v s left, after a load %v and %v", i, e, m, e2, m2)
				}
			}
			if i%100 == 0 {
				p.s = next
			}
		}
	}
	next := remaining.NewSizes()
	saved := memory.Save(&p.v, p.s)
	saved.Rest = saved.Rest[:len(saved.Rest)/2]
	if err := saved.Load(&p.v, next); err == nil {
		t.Error("half a memory is taken")
	}
}
