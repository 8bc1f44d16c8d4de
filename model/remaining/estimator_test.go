package remaining_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
)

// world is jobs that an Estimator hears of.
type world struct {
	v sched.View
	e *remaining.Estimator
}

func newWorld() *world { return &world{e: remaining.New()} }

// add adds a job that has done some seconds of work.
func (w *world) add(spec sched.JobSpec, done float64) sched.JobID {
	w.v.Jobs = append(w.v.Jobs, sched.Job{Spec: &spec, State: sched.Active, Attempt: sched.Running,
		Work: sched.Seconds(done), Rate: 1,
		WorkFrom: w.v.Now, LastStart: w.v.Now})
	return sched.JobID(len(w.v.Jobs) - 1)
}

// finish ends a job of so much work.
func (w *world) finish(spec sched.JobSpec, work float64) {
	id := w.add(spec, work)
	w.v.Jobs[id].State, w.v.Jobs[id].Attempt = sched.Done, sched.Ended
	w.e.Observe(&w.v, &sched.Event{Time: w.v.Now, Kind: sched.AttemptEnded, Job: id, Outcome: sched.Finished,
		Work: sched.Seconds(work)})
}

func (w *world) left(t *testing.T, spec sched.JobSpec, done, want float64) {
	t.Helper()
	if got := w.e.Remaining(&w.v, w.add(spec, done)).Seconds(); math.Abs(got-want) > 1e-6 {
		t.Errorf("%+v after %v s: %v s left, want %v", spec, done, got, want)
	}
}

var resnet = sched.JobSpec{Model: "resnet", User: "ann"}

// Ensure that a job without any knowledge is an hour, then as long again as so far; that one finished job of any class
// says more; and that with five of its class only these count: the mean of what is beyond where it is.
func TestMeanResidualLife(t *testing.T) {
	w := newWorld()
	w.left(t, resnet, 0, 3600)
	w.left(t, resnet, 600, 3600)
	w.left(t, resnet, 7200, 7200)
	w.finish(sched.JobSpec{Model: "bert"}, 1000)
	w.left(t, resnet, 0, 1000)
	w.left(t, resnet, 400, 600)
	w.left(t, resnet, 1000, 1000) // at the longest: as long again
	for _, x := range []float64{100, 200, 300, 400} {
		w.finish(resnet, x)
	}
	w.left(t, resnet, 0, 400) // (1000+100+200+300+400)/5
	w.finish(resnet, 500)
	w.left(t, resnet, 0, 300)
	w.left(t, resnet, 100, 250) // of 200, 300, 400, 500
	w.left(t, resnet, 450, 50)
	w.left(t, resnet, 500, 500)
	w.left(t, sched.JobSpec{Model: "bert"}, 0, 2500./6)
	// its class is the user's, of whom nothing is known without a model
	w.left(t, sched.JobSpec{User: "ann"}, 0, 2500./6)
}

// Ensure that the class is the first of class, model and user that is stated.
func TestClasses(t *testing.T) {
	w := newWorld()
	for range 5 {
		w.finish(sched.JobSpec{Class: "x", Model: "x", User: "x"}, 100)
		w.finish(sched.JobSpec{Model: "x", User: "x"}, 200)
		w.finish(sched.JobSpec{User: "x"}, 300)
	}
	w.left(t, sched.JobSpec{Class: "x", Model: "y"}, 0, 100)
	w.left(t, sched.JobSpec{Model: "x", User: "y"}, 0, 200)
	w.left(t, sched.JobSpec{User: "x"}, 0, 300)
	w.left(t, sched.JobSpec{}, 0, 200)
}

// Ensure that a stated wall time is believed until jobs show what it is worth, and is the limit until it is passed.
func TestWallTime(t *testing.T) {
	w := newWorld()
	states := func(hours int) sched.JobSpec {
		return sched.JobSpec{Model: "resnet", WallTime: time.Duration(hours) * time.Hour}
	}
	w.left(t, states(2), 0, 7200)
	w.left(t, states(2), 1800, 5400)
	w.left(t, states(2), 7200, 7200) // passed: as if none were stated
	for i := range 4 {
		w.finish(states(10), float64(3600*(i+1))) // a tenth to four of it
	}
	w.left(t, states(2), 0, 7200) // not enough yet
	w.finish(states(1), 1800)     // half
	w.left(t, states(2), 0, 2160) // 0.3 of it on average
	w.left(t, states(2), 1440, 7200*.2)
	w.left(t, states(2), 3000, 600)
	// beyond all shares: as long again, which is what is stated as well
	w.left(t, states(2), 3600, 3600)
	w.left(t, states(2), 7000, 200)                                       // not beyond what is stated
	w.left(t, sched.JobSpec{Model: "resnet"}, 0, (3600*10+1800)/5)        // states none: by the works
	w.left(t, sched.JobSpec{Model: "bert", WallTime: time.Hour}, 0, 1080) // of all classes
	for range 5 {
		w.finish(sched.JobSpec{Model: "bert"}, 1e5)
	}
	// its class is known to be long, and there is a limit
	w.left(t, sched.JobSpec{Model: "bert", WallTime: time.Hour}, 0, 3600)
}

// Ensure that a job that reports its steps is believed, also as it goes on, and that nothing is left where it does more
// than reported.
func TestSteps(t *testing.T) {
	w := newWorld()
	for range 5 {
		w.finish(resnet, 50)
	}
	id := w.add(resnet, 300)
	report := func(steps float64, total int32) {
		w.e.Observe(&w.v, &sched.Event{Time: w.v.Now, Kind: sched.Progressed, Job: id, Work: w.v.Jobs[id].Work,
			Value: steps, Code: total})
	}
	expect := func(want float64) {
		t.Helper()
		for _, got := range []time.Duration{w.e.Remaining(&w.v, id), w.e.Residual(&w.v, id, .9)} {
			if math.Abs(got.Seconds()-want) > 1e-6 {
				t.Errorf("%v left, want %v s", got, want)
			}
		}
	}
	report(100, 400)
	expect(900)
	if got := w.e.Until(&w.v, id); got != sched.Never {
		t.Errorf("ask again at %v, want never", got)
	}
	w.v.Now = w.v.Now.Add(100 * time.Second)
	expect(800)
	w.v.Now = w.v.Now.Add(time.Hour)
	expect(0)
	w.v.Jobs[id].Work, w.v.Jobs[id].WorkFrom = sched.Seconds(600), w.v.Now
	report(500, 400)
	expect(0)
	report(500, 0) // it does not know any more
	if got := w.e.Remaining(&w.v, id).Seconds(); got != 600 {
		t.Errorf("%v s left, want 600, as long again as so far", got)
	}
}

// Ensure that a job that reports no work counts by the time that its last attempt took, and that those that do not
// finish do not.
func TestWhatCounts(t *testing.T) {
	w := newWorld()
	id := w.add(resnet, 0)
	w.v.Now = w.v.Now.Add(250 * time.Second)
	for _, o := range []sched.Outcome{sched.Failed, sched.Cancelled, sched.Preempted, sched.NodeLost} {
		w.e.Observe(&w.v, &sched.Event{Time: w.v.Now, Kind: sched.AttemptEnded, Job: id, Outcome: o, Work: time.Second})
	}
	w.left(t, resnet, 0, 3600)
	w.e.Observe(&w.v, &sched.Event{Time: w.v.Now, Kind: sched.AttemptEnded, Job: id, Outcome: sched.Finished})
	w.left(t, resnet, 0, 250)
}

// Ensure that one that comes late learns from the jobs that are done, each once.
func TestComesLate(t *testing.T) {
	w := newWorld()
	late := func(o sched.Outcome, work, run time.Duration) {
		w.v.Jobs = append(w.v.Jobs, sched.Job{Spec: &resnet, State: sched.Done, Outcome: o, Work: work, Run: run})
	}
	late(sched.Finished, 100*time.Second, time.Hour)
	late(sched.Failed, time.Second, time.Second)
	late(sched.Finished, 0, 300*time.Second) // it reported no work
	w.v.Jobs = append(w.v.Jobs, sched.Job{Spec: &resnet, State: sched.Done, Outcome: sched.Finished,
		Work: 500 * time.Second})
	w.e.Observe(&w.v, &sched.Event{Kind: sched.AttemptEnded, Job: 3, Outcome: sched.Finished, Work: 500 * time.Second})
	w.left(t, resnet, 0, 300)
	w.e.Observe(&w.v, &sched.Event{Kind: sched.Ticked})
	w.left(t, resnet, 0, 300)
}

// Ensure that quantiles are as documented on a sample of four, and on none.
func TestQuantiles(t *testing.T) {
	w := newWorld()
	expect := func(done, q, want float64) {
		t.Helper()
		if got := w.e.Residual(&w.v, w.add(resnet, done), q).Seconds(); math.Abs(got-want) > 1e-6*want {
			t.Errorf("after %v s, %v: %v s, want %v", done, q, got, want)
		}
	}
	expect(0, .5, 3600)
	expect(7200, .5, 7200)
	expect(0, .9, 9*3600)
	for _, x := range []float64{100, 200, 300, 400} {
		w.finish(resnet, x)
	}
	expect(0, 0, 0)
	expect(0, .2, 100)
	expect(0, .3, 150)
	expect(0, .8, 400)
	expect(0, .9, 800)            // half of the last fifth is beyond twice the longest
	expect(200, .5, 150)          // of 300 and 400: a third each, and a third beyond
	expect(500, .5, 500)          // beyond all
	expect(0, 1, 100*365*24*3600) // anything may be
	if got := w.e.Residual(&w.v, w.add(sched.JobSpec{Model: "y", WallTime: time.Hour}, 1200),
		.25); got != 10*time.Minute {
		t.Errorf("%v, want a quarter of 40 minutes", got)
	}
}

// Ensure, on random classes, that jobs fall short of their quantiles as often as they should, from the start and
// halfway, and that the mean is the mean. Of m jobs that got further nothing is said of the first and the last 1/(m+1)
// but by a guess: nothing else is known.
func TestCalibration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draws := map[string]func() float64{
		"exponential": func() float64 { return 3600 * rng.ExpFloat64() },
		"lognormal":   func() float64 { return 3600 * math.Exp(1.5*rng.NormFloat64()) },
		"uniform":     func() float64 { return 100 + 900*rng.Float64() },
		"pareto":      func() float64 { return 60 * math.Pow(1-rng.Float64(), -1/1.5) },
	}
	for name, draw := range draws {
		for _, sample := range []int{5, 40, 250} {
			for _, at := range []float64{0, 300} {
				below, n := [3]int{}, [3]int{}
				for range 300 {
					w, beyond := newWorld(), 0.
					for range sample {
						x := draw()
						w.finish(resnet, x)
						if x > at {
							beyond++
						}
					}
					id := w.add(resnet, at)
					for i, q := range quantiles {
						if q < 1/(beyond+1) || q > beyond/(beyond+1) {
							continue
						}
						most := at + w.e.Residual(&w.v, id, q).Seconds()
						for range 10 {
							if x := draw(); x > at {
								n[i]++
								if x <= most {
									below[i]++
								}
							}
						}
					}
				}
				for i, q := range quantiles {
					// Draws of a world share its sample, of which five vary much.
					got, noise := float64(below[i])/float64(n[i]), 4*math.Sqrt(q*(1-q)*(1./300/6+1/float64(n[i])))+.02
					if n[i] > 300 && math.Abs(got-q) > noise {
						t.Errorf("%s, %d jobs, after %v s: %v of %d fall short of quantile %v, want within %.3f", name,
							sample, at, got, n[i], q, noise)
					}
				}
			}
		}
	}
	w := newWorld()
	for range 200 {
		w.finish(resnet, draws["exponential"]())
	}
	for _, at := range []float64{0, 1800, 3600} { // without memory: an hour is left at any time
		if got := w.e.Remaining(&w.v,
			w.add(resnet, at)).Seconds(); math.Abs(got-3600) > 4*3600/math.Sqrt(200*math.Exp(-at/3600)) {
			t.Errorf("after %v s: %v s left, want about an hour", at, got)
		}
	}
}

// quantiles are those looked at.
var quantiles = [...]float64{.1, .5, .9}

// random has w hear of n jobs of some classes.
func (w *world) random(rng *rand.Rand, n int) {
	for range n {
		spec := sched.JobSpec{Model: fmt.Sprint(rng.IntN(6))}
		if spec.Model == "0" {
			spec = sched.JobSpec{Class: "c", User: "u"}
		}
		if rng.IntN(2) == 0 {
			spec.WallTime = time.Duration(1+rng.IntN(10)) * time.Hour
		}
		if rng.IntN(3) == 0 {
			id := w.add(spec, 1+rng.Float64()*1e4)
			w.e.Observe(&w.v, &sched.Event{Time: w.v.Now, Kind: sched.Progressed, Job: id, Work: w.v.Jobs[id].Work,
				Value: 10, Code: int32(rng.IntN(50))})
			continue
		}
		w.finish(spec, rng.ExpFloat64()*1e4)
	}
}

// Ensure that an Estimator saved and loaded between any two jobs answers and saves as one that was not, and that what
// is wrong is an error that changes nothing.
func TestSaveAndLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	w := newWorld()
	for range 300 {
		w.random(rng, 1+rng.IntN(5))
		next := remaining.New()
		for j := range w.v.Jobs {
			if b := w.e.SaveJob(sched.JobID(j), nil); len(b) > 0 {
				if err := next.LoadJob(sched.JobID(j), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		saved := w.e.SaveRest(nil)
		if err := next.LoadRest(saved); err != nil {
			t.Fatal(err)
		}
		for j := range w.v.Jobs {
			id := sched.JobID(j)
			if a, b := w.e.Remaining(&w.v, id), next.Remaining(&w.v, id); a != b {
				t.Fatalf("job %d: %v left, loaded %v", j, a, b)
			}
			if a, b := w.e.Residual(&w.v, id, .7), next.Residual(&w.v, id, .7); a != b {
				t.Fatalf("job %d: quantile %v, loaded %v", j, a, b)
			}
		}
		if again := next.SaveRest(nil); !bytes.Equal(again, saved) || next.Revision() != w.e.Revision() {
			t.Fatal("what was loaded is saved otherwise")
		}
		for _, wrong := range [][]byte{nil, {2}, saved[:rng.IntN(len(saved))], append(bytes.Clone(saved), 0)} {
			if err := next.LoadRest(wrong); err == nil {
				t.Fatalf("%d of %d bytes are no error", len(wrong), len(saved))
			}
		}
		if !bytes.Equal(next.SaveRest(nil), saved) {
			t.Fatal("a load that failed changed something")
		}
		w.e = next
	}
	for _, wrong := range [][]byte{nil, {0x80}, {1, 1}, bytes.Repeat([]byte{0xff}, 9)} {
		if err := w.e.LoadJob(0, wrong); err == nil {
			t.Errorf("job memory %v is no error", wrong)
		}
	}
}

// Ensure that memory stays within bounds, that old classes make room and that the rest goes on as without them.
func TestBounds(t *testing.T) {
	w := newWorld()
	for range 3 * remaining.Window {
		w.finish(resnet, 1000)
	}
	one := len(w.e.SaveRest(nil))
	for range 3 * remaining.Window {
		w.finish(resnet, 2000)
	}
	if got := len(w.e.SaveRest(nil)); got > one+8 {
		t.Errorf("%d bytes after %d jobs, %d before", got, 6*remaining.Window, one)
	}
	w.left(t, resnet, 0, 2000) // those of 1000 are forgotten
	for i := range 3 * remaining.MaxClasses {
		w.finish(sched.JobSpec{User: fmt.Sprint(i)}, 500)
	}
	if got, most := len(w.e.SaveRest(nil)), one+40*remaining.MaxClasses; got > most {
		t.Errorf("%d bytes with %d classes seen, want at most %d", got, 3*remaining.MaxClasses, most)
	}
	w.left(t, resnet, 0, 500) // its class is forgotten: that of all
}

// Ensure that estimates are said to have changed when they have by much: at each of the first jobs, then ever more
// rarely.
func TestRevision(t *testing.T) {
	w := newWorld()
	rises := 0
	for i := range 1000 {
		was := w.e.Revision()
		w.finish(resnet, 100)
		if w.e.Revision() > was {
			rises++
		} else if i < 8 {
			t.Errorf("job %d changes nothing", i)
		}
	}
	if rises > 60 {
		t.Errorf("%d revisions in 1000 jobs", rises)
	}
	id := w.add(resnet, 20)
	if got := w.e.Until(&w.v, id); got != w.v.Now.Add(time.Minute) {
		t.Errorf("ask again at %v, want a minute later", got)
	}
	w.v.Jobs[id].Attempt = sched.Ended
	if got := w.e.Until(&w.v, id); got != sched.Never {
		t.Errorf("ask again at %v, want never", got)
	}
}

// FuzzLoadRest looks for memory that is taken and not saved as it was.
func FuzzLoadRest(f *testing.F) {
	w := newWorld()
	f.Add(w.e.SaveRest(nil))
	w.random(rand.New(rand.NewPCG(5, 6)), 40)
	f.Add(w.e.SaveRest(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := remaining.New()
		if e.LoadRest(b) != nil {
			return
		}
		saved := e.SaveRest(nil)
		next := remaining.New()
		if err := next.LoadRest(saved); err != nil || !bytes.Equal(next.SaveRest(nil), saved) {
			t.Fatalf("%x becomes %x: %v", b, saved, err)
		}
		v := sched.View{Jobs: []sched.Job{{Spec: &resnet, Work: time.Hour}}}
		if e.Remaining(&v, 0) < 0 || e.Residual(&v, 0, .5) < 0 {
			t.Fatal("less than nothing is left")
		}
	})
}
