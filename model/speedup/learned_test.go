package speedup

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// yard is a View of jobs of one application on a cluster of nodes of 4 GPUs.
func yard(gpus int, specs ...*sched.JobSpec) *sched.View {
	v := &sched.View{}
	for g := range gpus {
		v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(g / 4)})
	}
	for _, s := range specs {
		v.Jobs = append(v.Jobs, sched.Job{Spec: s})
	}
	return v
}

// runs has job j report a rate on GPUs from..from+n-1 as it starts.
func runs(l *Learned, v *sched.View, j sched.JobID, from, n int, r float64) {
	job := &v.Jobs[j]
	job.GPUs = job.GPUs[:0]
	for g := from; g < from+n; g++ {
		job.GPUs = append(job.GPUs, sched.GPUID(g))
	}
	l.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Job: j, Rate: r})
}

func spec(model string, want, batch int32) *sched.JobSpec {
	return &sched.JobSpec{Model: model, GPUs: sched.Range{Min: 1, Want: want, Max: 64},
		Batch: sched.BatchRange{Min: batch, Max: batch}}
}

// Ensure that, knowing nothing, a job is as fast on the GPUs it asks for as work says, and that wider is hoped to be
// faster.
func TestLearnedFromNothing(t *testing.T) {
	v := yard(16, spec("bert", 2, 128), spec("", 2, 128))
	l := NewLearned(4, 16)
	c, phase, done := l.Chain(v, 0)
	if len(c) != 1 || phase != 0 || done != 0 || c[0].Size != AssumedSeconds || len(c[0].Speed) != 17 ||
		c[0].Speed[0] != 0 {
		t.Fatalf("%v, %d, %v", c, phase, done)
	}
	if got := c[0].Speed[2]; math.Abs(got-1) > .01 {
		t.Errorf("rate %v on the GPUs asked for, want 1", got)
	}
	for k := 2; k <= 16; k *= 2 {
		if !(c[0].Speed[k] > c[0].Speed[k/2]) || c[0].Batch[k] != 128 {
			t.Errorf("%d GPUs: %v with batch %d after %v", k, c[0].Speed[k], c[0].Batch[k], c[0].Speed[k/2])
		}
	}
	if c, _, _ := l.Chain(v, 1); c != nil {
		t.Errorf("a chain of no application: %v", c)
	}
	if b := l.SaveRest(nil); len(b) != 2 {
		t.Errorf("asking left %d bytes, want none but the format and 0 pools", len(b))
	}
}

// Ensure that measured widths are reported as measured, and that an application's curve is found from a few widths.
func TestLearnedFindsCurves(t *testing.T) {
	truth := Overlap{.05, .004, .08, .003, .02, .001, 1.5}
	seconds := func(k int) float64 { return truth.Update(k, ceilDiv(k, 4), ceilDiv(256, k), 1) }
	v := yard(64, spec("resnet", 2, 256), spec("resnet", 2, 256))
	l := NewLearned(4, 32)
	for i, k := range []int{1, 2, 4, 8, 16} {
		runs(l, v, sched.JobID(i%2), 0, k, seconds(2)/seconds(k))
	}
	c, _, _ := l.Chain(v, 0)
	for k := 1; k <= 32; k++ {
		want, allowed := seconds(2)/seconds(k), .05
		switch k {
		case 1, 2, 4, 8, 16:
			allowed = 1e-12
		}
		if k > 16 { // to be tried, not trusted: as good as it went on before
			if got := c[0].Speed[k]; got < want || got > c[0].Speed[16]*c[0].Speed[16]/c[0].Speed[8]*(1+1e-9) {
				t.Errorf("%d GPUs: %.3f, want between the truth, %.3f, and the step from 8 to 16 once more", k, got,
					want)
			}
			continue
		}
		if off := math.Abs(c[0].Speed[k]/want - 1); off > allowed {
			t.Errorf("%d GPUs: %.3f, want %.3f", k, c[0].Speed[k], want)
		}
	}
	// A job of another batch size or width learns nothing from it; one of another name neither.
	other := yard(64, spec("resnet", 4, 256), spec("vgg", 2, 256), spec("resnet", 2, 128))
	for j := range other.Jobs {
		if d, _, _ := l.Chain(other, sched.JobID(j)); reflect.DeepEqual(c, d) {
			t.Errorf("job %d has the chain of another pool", j)
		}
	}
}

// Ensure that the size is the mean work of the finished, and that the share done follows the work.
func TestLearnedSize(t *testing.T) {
	v := yard(4, spec("bert", 1, 8), spec("bert", 1, 8), spec("bert", 1, 8))
	l := NewLearned(4, 4)
	for j, work := range []time.Duration{100 * time.Second, 300 * time.Second} {
		l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: sched.JobID(j), Outcome: sched.Finished, Work: work})
	}
	l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: 2, Outcome: sched.Preempted, Work: time.Second})
	v.Jobs[2].Work = 50 * time.Second
	c, _, done := l.Chain(v, 2)
	if c[0].Size != 200 || done != .25 {
		t.Errorf("size %v, %v done, want 200 and a quarter", c[0].Size, done)
	}
	v.Jobs[2].Work = time.Hour
	if _, _, done = l.Chain(v, 2); done != 1 {
		t.Errorf("%v done, want 1", done)
	}
}

// Ensure that a batch size that does not fit keeps narrow widths from being possible until one is seen.
func TestLearnedMemory(t *testing.T) {
	s := spec("bert", 4, 64)
	s.Batch.PerGPU = 16
	v := yard(8, s)
	l := NewLearned(4, 8)
	c, _, _ := l.Chain(v, 0)
	for k := 1; k <= 8; k++ {
		if possible := c[0].Speed[k] > 0; possible != (k >= 4) {
			t.Errorf("%d GPUs of 16 samples for a batch of 64: %v", k, possible)
		}
	}
	runs(l, v, 0, 0, 2, .4)
	if c, _, _ = l.Chain(v, 0); c[0].Speed[2] != .4 || c[0].Speed[3] != 0 {
		t.Errorf("%v after 2 GPUs were seen at 0.4", c[0].Speed)
	}
}

// does has job j run at a rate on GPUs 0..n-1 from some work to another, in seconds.
func does(l *Learned, v *sched.View, j sched.JobID, n int, r, from, to float64) {
	v.Jobs[j].GPUs = nil
	for g := range n {
		v.Jobs[j].GPUs = append(v.Jobs[j].GPUs, sched.GPUID(g))
	}
	l.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Job: j, Rate: r, Work: sched.Seconds(from)})
	l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: j, Outcome: sched.Preempted, Work: sched.Seconds(to)})
}

// Ensure that a report counts for as long as it holds, not for being one, and that work done in several stages counts
// in each.
func TestLearnedStages(t *testing.T) {
	v := yard(8, spec("bert", 2, 64))
	l := NewLearned(4, 8)
	does(l, v, 0, 4, 1, 0, 300)   // all of the first stage, in 300 s
	does(l, v, 0, 4, 3, 300, 700) // all of the second, in 50 s, and most of the third
	for range 5 {
		runs(l, v, 0, 0, 4, 1)
		l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: 0, Outcome: sched.Failed})
	}
	c, _, _ := l.Chain(v, 0)
	for stage, want := range []float64{1, 3, 3} {
		if got := c[stage].Speed[4]; math.Abs(got/want-1) > .01 {
			t.Errorf("stage %d: rate %v on 4 GPUs, want %v", stage, got, want)
		}
	}
	if sizes := []float64{c[0].Size, c[1].Size, c[2].Size}; !reflect.DeepEqual(sizes, []float64{300, 150, 225}) {
		t.Errorf("stages of %v s of work, want 300, 150, 225", sizes)
	}
	// A stage that was not seen has the mean of those that were, and one in which other widths were has what they say
	// of it.
	if got, want := c[4].Speed[4], 1012.5/(300+712.5/3); math.Abs(got/want-1) > .01 {
		t.Errorf("a stage not seen: rate %v, want %v", got, want)
	}
	// Twice the widest goes on as before, by no more than the number of GPUs: from 1 to 1, and from 1 to 3. Wider is no
	// better.
	if early, late := c[0].Speed[8], c[1].Speed[8]; math.Abs(early-1) > .01 || math.Abs(late-6) > .06 {
		t.Errorf("8 GPUs, not seen: rates %v and %v, want 1 and 6", early, late)
	}
	v.Jobs[0].Work = 700 * time.Second
	if _, phase, done := l.Chain(v, 0); phase != 3 || math.Abs(done-25/337.5) > 1e-12 {
		t.Errorf("phase %d, of which %v done; want 3, 25 s of 337.5", phase, done)
	}
}

// Ensure that what is old fades, that small changes are not reported, and that odd rates are not learned.
func TestLearnedReports(t *testing.T) {
	v := yard(8, spec("bert", 2, 64))
	l := NewLearned(4, 8)
	speed := func() float64 {
		c, _, _ := l.Chain(v, 0)
		return c[0].Speed[4]
	}
	for range 50 {
		does(l, v, 0, 4, 1.5, 0, 300)
	}
	does(l, v, 0, 4, 1.6, 0, 300)
	if got := speed(); math.Abs(got-1.5) > 1e-9 {
		t.Errorf("%v after one run at 1.6 of 51, want still 1.5", got)
	}
	for range 80 {
		does(l, v, 0, 4, 3, 0, 300)
	}
	if got := speed(); math.Abs(got-3) > .16 {
		t.Errorf("%v after 80 runs at 3, want about that", got)
	}
	before := l.SaveRest(nil)
	for _, r := range []float64{0, -1, math.NaN(), math.Inf(1), 1e-12, 1e12} {
		runs(l, v, 0, 0, 4, r)
	}
	v.Jobs[0].GPUs = nil
	l.Observe(v, &sched.Event{Kind: sched.Progressed, Job: 0, Rate: 1})
	if !bytes.Equal(before, l.SaveRest(nil)) {
		t.Error("a rate that is none was learned")
	}
}

// Ensure that Save and Load change nothing of the future.
func TestLearnedSaves(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	specs := []*sched.JobSpec{spec("a", 1, 32), spec("a", 2, 32), spec("b", 4, 0), spec("b", 4, 0),
		{Model: "c", GPUs: sched.Range{Min: 1, Want: 2, Max: 8}, Batch: sched.BatchRange{Min: 8, Max: 64, PerGPU: 16}}}
	v := yard(16, specs...)
	a, b := NewLearned(4, 8), NewLearned(4, 8)
	for i := range 120 {
		j := sched.JobID(r.IntN(len(specs)))
		v.Jobs[j].Live.Batch = specs[j].Batch.Max >> r.IntN(2)
		from, n, rate := r.IntN(8), 1+r.IntN(8), math.Exp(r.NormFloat64())
		for _, l := range []*Learned{a, b} {
			if i%7 == 0 {
				l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: j, Outcome: sched.Finished,
					Work: time.Duration(1 + rate*1e12)})
			} else {
				runs(l, v, j, from, n, rate)
			}
		}
		if i%40 == 0 {
			for k := range specs {
				wantChain, _, _ := a.Chain(v, sched.JobID(k))
				if gotChain, _, _ := b.Chain(v, sched.JobID(k)); !reflect.DeepEqual(gotChain, wantChain) {
					t.Fatalf("step %d: job %d: chains differ after Save and Load", i, k)
				}
			}
		}
		saved := b.SaveRest([]byte("x"))[1:]
		next := NewLearned(4, 8)
		if err := next.LoadRest(saved); err != nil {
			t.Fatal(err)
		}
		for k := range specs {
			one := b.SaveJob(sched.JobID(k), nil)
			if err := next.LoadJob(sched.JobID(k), one); err != nil ||
				!bytes.Equal(next.SaveJob(sched.JobID(k), nil), one) {
				t.Fatalf("step %d: job %d: %v, or another memory of it", i, k, err)
			}
		}
		b = next
		if !bytes.Equal(b.SaveRest(nil), saved) || !bytes.Equal(a.SaveRest(nil), saved) {
			t.Fatalf("step %d: what is saved differs", i)
		}
	}
	if err := a.LoadJob(3, []byte{1}); err == nil ||
		err.Error() != "speedup: load: 1 bytes about job 3 that are no rate" {
		t.Errorf("error %v", err)
	}
	saved := a.SaveRest(nil)
	for n := range saved {
		if err := a.LoadRest(saved[:n]); err == nil {
			t.Fatalf("loaded %d of %d bytes", n, len(saved))
		}
	}
	if !bytes.Equal(a.SaveRest(nil), saved) {
		t.Error("a failed load left something")
	}
}

// Ensure that what is reported does not depend on when it was asked before, nor on whether it was saved and loaded
// since: of three that see the same, one is asked at every step, one is loaded again, and one is asked at the end
// alone.
func TestLearnedAskedAnyTime(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		free := &sched.JobSpec{Model: "a", GPUs: sched.Range{Min: 1, Want: 2, Max: 8},
			Batch: sched.BatchRange{Min: 8, Max: 64}}
		v := yard(16, free, free, spec("b", 4, 0))
		often, again, once := NewLearned(4, 8), NewLearned(4, 8), NewLearned(4, 8)
		for range 60 {
			j := sched.JobID(r.IntN(len(v.Jobs)))
			v.Jobs[j].Live.Batch = v.Jobs[j].Spec.Batch.Max >> r.IntN(3)
			// rates so alike that means are reported as before
			n, rate, from := 1+r.IntN(8), 1+.04*r.Float64(), float64(r.IntN(300))
			to := from + float64(r.IntN(600))
			for _, l := range []*Learned{often, again, once} {
				does(l, v, j, n, rate, from, to)
			}
			often.Chain(v, 0)
			next := NewLearned(4, 8)
			if err := next.LoadRest(again.SaveRest(nil)); err != nil {
				t.Fatal(err)
			}
			again = next
		}
		for j := range v.Jobs {
			want, _, _ := once.Chain(v, sched.JobID(j))
			for name, l := range map[string]*Learned{"asked at every step": often, "loaded at every step": again} {
				if got, _, _ := l.Chain(v, sched.JobID(j)); !reflect.DeepEqual(got, want) {
					t.Fatalf("seed %d: job %d: %s: %v, asked at the end alone: %v", seed, j, name, got, want)
				}
			}
		}
	}
}

func FuzzLearnedLoad(f *testing.F) {
	l := NewLearned(4, 8)
	v := yard(8, spec("bert", 2, 64))
	runs(l, v, 0, 0, 4, 1.5)
	f.Add(l.SaveRest(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := NewLearned(4, 8)
		if err := l.LoadRest(b); err != nil {
			checkError(t, err)
			return
		}
		saved := l.SaveRest(nil)
		if err := l.LoadRest(saved); err != nil || !bytes.Equal(l.SaveRest(nil), saved) {
			t.Errorf("saved again and loaded: %v", err)
		}
	})
}

// Ensure that kinds of jobs without end do not grow what is remembered without end, and that what is known stays.
func TestLearnedIsBounded(t *testing.T) {
	l := NewLearned(4, 8)
	for i := range maxPools + 100 {
		v := &sched.View{Jobs: []sched.Job{{Spec: &sched.JobSpec{Model: fmt.Sprint("m", i), GPUs: sched.Rigid(1)}}}}
		l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Finished,
			Work: time.Duration(1+i) * time.Second})
		if i > maxPools-3 {
			l.Chain(v, 0)
		}
	}
	if len(l.pools) != maxPools || len(l.blank) > maxPools {
		t.Errorf("%d pools, %d of nothing, want %d", len(l.pools), len(l.blank), maxPools)
	}
	b := l.SaveRest(nil)
	again := NewLearned(4, 8)
	if err := again.LoadRest(b); err != nil || string(again.SaveRest(nil)) != string(b) {
		t.Errorf("loaded with %v", err)
	}
}

// Ensure that a job that its user gives another width goes on to be learned from, and to be reported of, in the unit of
// its work: what it reports means what it meant before.
func TestLearnedKeepsTheUnitOfAChangedJob(t *testing.T) {
	asked := spec("bert", 4, 128)
	v := yard(16, asked, spec("bert", 1, 128), spec("bert", 4, 128))
	v.Jobs[0].Asked = 4
	l := NewLearned(4, 16)
	runs(l, v, 0, 0, 4, 1)
	untouched := fmt.Sprint(l.Chain(v, 1))
	c := asked.Change()
	c.GPUs = sched.Range{Min: 1, Want: 1, Max: 64}
	v.Jobs[0].Spec = asked.Changed(&c)
	l.Observe(v, &sched.Event{Kind: sched.JobChanged, Job: 0, Change: &c})
	v.Jobs[0].GPUs = v.Jobs[0].GPUs[:1]
	l.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Job: 0, Work: 100 * time.Second, Rate: .25})
	l.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Job: 0, Work: 200 * time.Second, Rate: .25,
		Outcome: sched.Finished})
	if now := fmt.Sprint(l.Chain(v, 1)); now != untouched {
		t.Errorf("jobs that asked for one GPU: %v, were %v", now, untouched)
	}
	for _, j := range []sched.JobID{0, 2} {
		chain, _, _ := l.Chain(v, j)
		if got := chain[0].Speed; math.Abs(got[1]-.25) > 1e-9 || math.Abs(got[4]-1) > 1e-9 || chain[0].Size != 200 {
			t.Errorf("job %d: %v of %v s, want rate 1/4 on one GPU and 1 on four, of 200 s", j, got[:5], chain[0].Size)
		}
	}
}

// Ensure that a rate which is a guess is not learned, and that what is measured then is.
func TestLearnedNoGuess(t *testing.T) {
	v := yard(16, spec("bert", 4, 128), spec("bert", 4, 128))
	l := NewLearned(4, 16)
	before := fmt.Sprint(l.Chain(v, 1))
	v.Jobs[0].GPUs = []sched.GPUID{0, 1}
	l.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Job: 0, Rate: .5, Code: sched.GuessedRate})
	if after := fmt.Sprint(l.Chain(v, 1)); after != before {
		t.Errorf("after a guess %v, before %v", after, before)
	}
	l.Observe(v, &sched.Event{Kind: sched.Progressed, Job: 0, Work: 10 * time.Second, Rate: .75})
	if c, _, _ := l.Chain(v, 1); math.Abs(c[0].Speed[2]-.75) > 1e-9 {
		t.Errorf("rate %v on two GPUs, want the measured 0.75", c[0].Speed[2])
	}
}
