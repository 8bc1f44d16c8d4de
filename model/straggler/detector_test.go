package straggler

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

const minute = sched.Time(time.Minute)

// world makes the reports of jobs on nodes of the same size: the truth that a detector is to find.
type world struct {
	d     *Detector
	r     *rand.Rand
	size  int                                 // GPUs of a node
	slow  func(g int, now sched.Time) float64 // how many times as slow; nil = no one is
	sigma float64                             // of the noise
	jobs  []*work                             // by JobID
	now   sched.Time
	said  []said
	label func(g int) int // number of a GPU, for the detector; nil = the same
	each  func(w *world)  // after each minute
}

type work struct {
	gpus []sched.GPUID
	step float64 // seconds, on GPUs that are not slow
	kind Kind
}

type said struct {
	at sched.Time
	Check
}

// newWorld has nodes of size GPUs, racks of perRack nodes (0 = unknown).
func newWorld(t testing.TB, nodes, size, perRack int, seed uint64) *world {
	t.Helper()
	d, err := New(Params{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range nodes {
		rack := 0
		if perRack > 0 {
			rack = 1 + n/perRack
		}
		d.Node(sched.NodeID(n), int32(rack), sched.GPUID(n*size), size)
	}
	return &world{d: d, r: rand.New(rand.NewPCG(seed, 77)), size: size, sigma: .02}
}

// start places the next job.
func (w *world) start(step float64, gpus ...int) sched.JobID {
	w.jobs = append(w.jobs, &work{step: step})
	w.move(len(w.jobs)-1, gpus...)
	return sched.JobID(len(w.jobs) - 1)
}

// move starts an attempt of a job elsewhere.
func (w *world) move(j int, gpus ...int) {
	x := w.jobs[j]
	x.gpus = x.gpus[:0]
	var nodes []int
	for _, g := range gpus {
		x.gpus = append(x.gpus, sched.GPUID(g))
		if n := g / w.size; !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	x.kind = Kind{"m", int32(len(gpus)), int32(len(nodes))}
	reported := slices.Clone(x.gpus)
	for i, g := range reported {
		if w.label != nil {
			reported[i] = sched.GPUID(w.label(int(g)))
		}
	}
	slices.Sort(reported)
	w.d.Begin(w.now, sched.JobID(j), x.kind, reported, 1)
}

func (w *world) stop(j int) {
	w.d.End(w.now, sched.JobID(j))
	w.jobs[j].gpus = nil
}

// run lets minutes pass and returns what was said meanwhile.
func (w *world) run(minutes int) []said {
	from := len(w.said)
	for range minutes {
		w.now += minute
		for j, x := range w.jobs {
			if len(x.gpus) == 0 {
				continue
			}
			worst := 1.
			for _, g := range x.gpus {
				if w.slow != nil {
					worst = max(worst, w.slow(int(g), w.now))
				}
			}
			for _, c := range w.d.Report(w.now, sched.JobID(j), x.step*worst*math.Exp(w.sigma*w.r.NormFloat64())) {
				w.said = append(w.said, said{w.now, c})
			}
		}
		if w.each != nil {
			w.each(w)
		}
	}
	return w.said[from:]
}

// bad returns the GPUs that were charged, with the largest share of each.
func bad(list []said) map[int]float64 {
	m := make(map[int]float64)
	for _, s := range list {
		if s.Factor > 1 {
			m[int(s.GPU)] = max(m[int(s.GPU)], s.Share)
		}
	}
	return m
}

// only is the slowness of some GPUs from a time on.
func only(from sched.Time, x float64, gpus ...int) func(int, sched.Time) float64 {
	return func(g int, now sched.Time) float64 {
		if now > from && slices.Contains(gpus, g) {
			return x
		}
		return 1
	}
}

// Ensure that a jump of one GPU is found by the third report after it, with the right factor, and by no one else; that
// the end of it is found as well, and reported.
func TestJump(t *testing.T) {
	for _, x := range []float64{1.15, 1.3, 1.5, 2.8, 10} {
		w := newWorld(t, 4, 4, 0, 1)
		for g := range 8 {
			w.start(.5, g)
		}
		w.run(60)
		w.slow = only(w.now, x, 3)
		at := w.now
		got := w.run(10)
		if len(got) == 0 || got[0].GPU != 3 || got[0].at > at+3*minute || math.Abs(got[0].Factor/x-1) > .06 ||
			got[0].Share != 1 {
			t.Errorf("%v: said %v", x, got)
		}
		if m := bad(got); len(m) != 1 {
			t.Errorf("%v: charged %v", x, m)
		}
		if f, since := w.d.Slow(3); math.Abs(f/x-1) > .05 || since != at {
			t.Errorf("%v: job slow by %v since %v, want since %v", x, f, since, at)
		}
		w.slow = nil
		got = w.run(20)
		if f, _ := w.d.Slow(3); f != 1 || len(got) == 0 || got[len(got)-1].Factor != 1 ||
			got[len(got)-1].at > at+15*minute {
			t.Errorf("%v: over, but the job is slow by %v, said %v", x, f, got)
		}
	}
}

// Ensure that odd reports do not count: one of any size, and two in a row.
func TestOddReports(t *testing.T) {
	for _, odd := range []int{1, 2} {
		w := newWorld(t, 1, 4, 0, 2)
		w.start(.5, 0)
		w.run(30)
		for i := range 300 {
			w.slow = nil
			if i%10 < odd {
				w.slow = only(0, 50, 0)
			}
			w.run(1)
		}
		if len(w.said) > 0 {
			t.Errorf("%d odd reports in ten: said %v", odd, w.said)
		}
	}
}

// Ensure that a slow drift to 1.15 within hours is found before it is over, at less than 1.10.
func TestDrift(t *testing.T) {
	for seed := range uint64(10) {
		w := newWorld(t, 1, 4, 0, seed)
		w.start(.5, 0, 1)
		w.run(30)
		from := w.now
		w.slow = func(g int, now sched.Time) float64 {
			if g != 1 {
				return 1
			}
			return 1 + .15*min(1, float64(now-from)/float64(240*minute))
		}
		got := w.run(240)
		if len(got) == 0 || got[0].Factor > 1.1 {
			t.Errorf("seed %d: said %v", seed, got)
		}
	}
}

// Ensure that a job that starts on a slow GPU is found out by what its model takes elsewhere, from the third report on,
// and without others to compare by what the job itself took before.
func TestSlowFromTheStart(t *testing.T) {
	w := newWorld(t, 4, 4, 0, 3)
	for g := range 6 {
		w.start(.5*(1+.01*float64(g%3)), g)
	}
	w.slow = only(0, 1.5, 9)
	w.run(20)
	at := w.now
	w.start(.5, 9)
	if got := w.run(5); len(got) == 0 || got[0].GPU != 9 || got[0].at > at+4*minute || got[0].Share != 1 {
		t.Errorf("by others: said %v", got)
	}
	w = newWorld(t, 4, 4, 0, 3)
	w.start(.5, 0)
	w.slow = only(0, 1.5, 9)
	w.run(20)
	w.move(0, 9)
	if got := w.run(5); len(got) == 0 || got[0].GPU != 9 {
		t.Errorf("by itself: said %v", got)
	}
	// No one knows: the first attempt of the first job. It is silent then, and when it gets faster elsewhere.
	w = newWorld(t, 4, 4, 0, 3)
	w.slow = only(0, 1.5, 9)
	w.start(.5, 9)
	w.run(20)
	w.move(0, 8)
	if w.run(20); len(w.said) > 0 {
		t.Errorf("nothing known: said %v", w.said)
	}
	w.move(0, 9)
	if got := w.run(5); len(got) == 0 || got[0].GPU != 9 {
		t.Errorf("back again: said %v", got)
	}
}

// Ensure that jobs of one model that differ by half from user to user make no one suspicious at their start.
func TestModelsThatVary(t *testing.T) {
	w := newWorld(t, 8, 8, 0, 4)
	for i := range 64 {
		w.start(.5*math.Exp(.5*w.r.NormFloat64()), i)
		w.run(12)
	}
	if len(w.said) > 0 {
		t.Errorf("said %v", w.said)
	}
}

// Ensure that kinds that differ make no one suspicious at the first job of one, and that a slow GPU is found by jobs of
// other kinds where these agree.
func TestKinds(t *testing.T) {
	play := func(vary float64) []said {
		w := newWorld(t, 8, 8, 0, 12)
		for width := 1; width <= 7; width++ {
			w.start(math.Exp(vary*w.r.NormFloat64()), []int{0, 1, 2, 3, 4, 5, 6}[:width]...)
			w.run(30)
			w.stop(width - 1)
		}
		w.slow = only(0, 2.8, 63)
		w.start(1, 56, 57, 58, 59, 60, 61, 62, 63)
		return w.run(6)
	}
	for _, vary := range []float64{.3, .7} {
		if got := play(vary); len(got) > 0 {
			t.Errorf("kinds that differ by %v: said %v", vary, got)
		}
	}
	if m := bad(play(.01)); len(m) != 8 {
		t.Errorf("kinds that agree: charged %v, want the node", m)
	}
}

// Ensure that a job that slows down by itself is believed once it is as slow on other nodes, and that the charge
// against its first GPUs is taken back.
func TestJobSlowsItself(t *testing.T) {
	w := newWorld(t, 4, 4, 0, 5)
	w.start(.5, 0, 1)
	w.run(30)
	w.jobs[0].step *= 1.6
	if m := bad(w.run(6)); len(m) != 2 || m[0] != .5 {
		t.Errorf("charged %v, want both, half each", m)
	}
	w.move(0, 8, 9)
	got := w.run(30)
	if len(bad(got)) > 0 || len(got) == 0 || got[0].Factor != 1 {
		t.Errorf("elsewhere: said %v", got)
	}
	if f, _ := w.d.Slow(0); f != 1 {
		t.Errorf("still slow by %v", f)
	}
}

// Ensure who is blamed, by puzzles: two nodes of four GPUs to a rack.
func TestAttribution(t *testing.T) {
	for _, c := range []struct {
		name string
		slow []int
		play func(w *world)
		want map[int]float64
	}{
		{"gang on one node: all of it", []int{1}, func(w *world) { w.start(1, 0, 1, 2) },
			map[int]float64{0: 1. / 3, 1: 1. / 3, 2: 1. / 3}},
		{"then another gang shares one GPU", []int{1}, func(w *world) {
			j := int(w.start(1, 0, 1))
			w.run(6)
			w.stop(j)
			w.start(1, 1, 5)
		}, map[int]float64{1: 1}},
		{"the others serve well elsewhere", []int{1}, func(w *world) {
			j := int(w.start(1, 0, 1, 2))
			w.run(6)
			w.move(j, 12, 13, 14)
			w.start(1, 0)
			w.start(1, 2)
			w.run(8)
			w.move(j, 0, 1, 2)
		}, map[int]float64{1: 1}},
		{"two gangs of a node", []int{4, 5, 6, 7}, func(w *world) { w.start(1, 4, 5); w.start(1, 6, 7) },
			map[int]float64{4: 1, 5: 1, 6: 1, 7: 1}},
		{"two GPUs of a node, a third serves well", []int{4, 6},
			func(w *world) { w.start(1, 4); w.start(1, 5); w.start(1, 6) },
			map[int]float64{4: 1, 6: 1}},
		{"two at once on two nodes", []int{0, 9},
			func(w *world) { w.start(1, 0); w.start(1, 9); w.start(1, 1); w.start(1, 8) }, map[int]float64{0: 1, 9: 1}},
		{"a rack", []int{8, 9, 10, 11, 12, 13, 14, 15},
			func(w *world) { w.start(1, 8, 9); w.start(1, 10, 12); w.start(1, 13); w.start(1, 14) },
			map[int]float64{8: 1, 9: 1, 10: 1, 11: 1, 12: 1, 13: 1, 14: 1, 15: 1}},
		{"gang over two nodes", []int{0}, func(w *world) { w.start(1, 0, 4) }, map[int]float64{0: .5, 4: .5}},
	} {
		w := newWorld(t, 8, 4, 2, 6)
		for g := 16; g < 32; g++ { // peers, of all widths needed
			w.start(1, g)
		}
		for i := range 5 {
			_ = i
			w.run(15)
			for j := range w.jobs {
				w.stop(j)
			}
			w.jobs = append(w.jobs, &work{step: 1}, &work{step: 1}, &work{step: 1}, &work{step: 1})
			n := len(w.jobs)
			w.move(n-4, 16, 17)
			w.move(n-3, 20, 24)
			w.move(n-2, 18, 19, 21)
			w.move(n-1, 28, 29, 30)
		}
		w.run(15)
		for j := range w.jobs {
			w.stop(j)
		}
		if len(w.said) > 0 {
			t.Fatalf("before: said %v", w.said)
		}
		w.slow = only(0, 1.5, c.slow...)
		c.play(w)
		w.run(9)
		list := w.said
		list = list[max(0, len(list)-1):]
		got := bad(w.run(9))
		if len(got) != len(c.want) {
			t.Errorf("%s: charged %v, want %v (before: %v)", c.name, got, c.want, list)
			continue
		}
		for g, x := range c.want {
			if math.Abs(got[g]-x) > 1e-9 {
				t.Errorf("%s: charged %v, want %v", c.name, got, c.want)
			}
		}
	}
}

// churn places jobs at random for a while, each for so many minutes at most, and lets the world run.
func churn(w *world, gpus, minutes, longest int) {
	free := make([]bool, gpus)
	ends := make(map[int]sched.Time)
	for g := range free {
		free[g] = true
	}
	for range minutes {
		for j := range w.jobs {
			if at, ok := ends[j]; ok && at <= w.now {
				for _, g := range w.jobs[j].gpus {
					free[g] = true
				}
				w.stop(j)
				delete(ends, j)
			}
		}
		width := []int{1, 1, 1, 2, 4, 8}[w.r.IntN(6)]
		var set []int
		for g := 0; g < gpus && len(set) < width; g++ {
			if free[g] {
				set = append(set, g)
			}
		}
		if len(set) == width && w.r.IntN(3) > 0 {
			for _, g := range set {
				free[g] = false
			}
			j := w.start(.3, set...)
			ends[int(j)] = w.now + sched.Time(5+w.r.IntN(longest))*minute
		}
		w.run(1)
	}
}

// Ensure that noise alone charges no one: 64 GPUs under changing jobs for ten days, at several noises.
func TestNoFalseAlarms(t *testing.T) {
	for i, sigma := range []float64{.002, .02, .05, .2} {
		w := newWorld(t, 8, 8, 0, uint64(7+i))
		w.sigma = sigma
		churn(w, 64, 14400/4, 300)
		if m := bad(w.said); len(m) > 0 {
			t.Errorf("noise %v: charged %v", sigma, m)
		}
	}
}

// Ensure that saving and loading at any minute, a second run, and another unit of time change nothing that is said; nor
// does numbering the GPUs of a node otherwise, but for the numbers.
func TestRelations(t *testing.T) {
	play := func(change func(w *world)) []said {
		w := newWorld(t, 4, 4, 2, 8)
		w.slow = func(g int, now sched.Time) float64 {
			switch {
			case g == 2 && now > 100*minute && now < 400*minute:
				return 2
			case g/4 == 3 && now > 300*minute:
				return 1.4
			}
			return 1
		}
		change(w)
		churn(w, 16, 1000, 100)
		return w.said
	}
	want := play(func(*world) {})
	if len(want) < 20 {
		t.Fatalf("said %v", want)
	}
	if got := play(func(*world) {}); !slices.Equal(got, want) {
		t.Errorf("again: said otherwise")
	}
	if got := play(func(w *world) { w.each = func(w *world) { reload(t, w) } }); !slices.Equal(got, want) {
		t.Errorf("saved and loaded: said %d instead of %d", len(got), len(want))
	}
	label := func(g int) int { return g/4*4 + (g+3*(g/4)+1)%4 }
	relabelled := play(func(w *world) { w.label = label })
	said := len(want)
	for i := range want { // in the order of the other numbers
		want := want[i]
		want.GPU = sched.GPUID(label(int(want.GPU)))
		if !slices.Contains(relabelled, want) || len(relabelled) != said {
			t.Fatalf("other numbers: %v is not said", want)
		}
	}
	scaled := play(func(w *world) {
		slow := w.slow
		w.slow = func(g int, now sched.Time) float64 { return 1024 * slow(g, now) }
	})
	if len(scaled) != len(want) {
		t.Fatalf("another unit: said %d instead of %d", len(scaled), len(want))
	}
	for i := range want {
		if scaled[i].at != want[i].at || scaled[i].GPU != want[i].GPU ||
			math.Abs(scaled[i].Factor/want[i].Factor-1) > 1e-9 {
			t.Fatalf("another unit: said %v instead of %v", scaled[i], want[i])
		}
	}
}

// reload replaces the detector by one that loads what it saves.
func reload(t *testing.T, w *world) {
	t.Helper()
	next, _ := New(Params{})
	for j := range w.jobs {
		if b := w.d.SaveJob(sched.JobID(j), nil); len(b) > 0 {
			if err := next.LoadJob(sched.JobID(j), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	rest := w.d.SaveRest(nil)
	if err := next.LoadRest(rest); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(next.SaveRest(nil), rest) {
		t.Fatal("saved otherwise after loading")
	}
	w.d = next
}

// Ensure that what makes no sense is left aside.
func TestBadInput(t *testing.T) {
	w := newWorld(t, 1, 4, 0, 9)
	d := w.d
	d.Begin(0, 0, Kind{"m", 1, 1}, []sched.GPUID{0}, math.NaN())
	d.Begin(0, 1, Kind{"m", 1, 1}, []sched.GPUID{4}, 1) // no such GPU
	d.Begin(0, 2, Kind{"m", 0, 0}, nil, 1)
	d.Begin(0, -1, Kind{"m", 1, 1}, []sched.GPUID{1}, 1)
	d.End(0, 7)
	d.End(0, -1)
	d.Forget(9)
	for i := range 40 {
		d.Report(sched.Time(i+1)*minute, 0, 1)
	}
	before := fmt.Sprint(d.live[0])
	for _, step := range []float64{math.NaN(), 0, -1, math.Inf(1)} {
		d.Report(41*minute, 0, step)
	}
	d.Report(40*minute, 0, 5) // as late as the last
	d.Report(0, 0, 5)
	for _, j := range []sched.JobID{-1, 1, 2, 99} {
		d.Report(41*minute, j, 5)
	}
	if after := fmt.Sprint(d.live[0]); after != before {
		t.Errorf("the attempt was %s, is %s", before, after)
	}
	for _, p := range []Params{{Margin: -1}, {Margin: math.NaN()}, {Memory: -1}} {
		if _, err := New(p); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
}

// FuzzLoad ensures that no bytes make a load panic or leave a detector that cannot go on.
func FuzzLoad(f *testing.F) {
	w := newWorld(f, 2, 4, 1, 10)
	w.slow = only(30*minute, 2, 1)
	w.start(1, 0, 1)
	w.start(1, 4)
	w.run(50)
	f.Add(w.d.SaveJob(0, nil), w.d.SaveRest(nil))
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, job, rest []byte) {
		w := newWorld(t, 2, 4, 1, 10)
		if w.d.LoadRest(rest) == nil && !bytes.Equal(w.d.SaveRest(nil), rest) {
			t.Error("saved otherwise")
		}
		_ = w.d.LoadJob(0, job)
		w.d.Node(0, 1, 0, 4)
		w.d.Node(1, 1, 4, 4)
		w.d.Begin(0, 1, Kind{"m", 1, 1}, []sched.GPUID{4}, 1)
		for i := range 20 {
			for _, c := range w.d.Report(sched.Time(i)*minute, sched.JobID(i%2), 1+float64(i/10)) {
				if !(c.Factor > 0) || c.Share <= 0 {
					t.Errorf("check %v", c)
				}
			}
		}
		w.d.End(20*minute, 0)
		w.d.End(20*minute, 1)
	})
}

// BenchmarkReport measures a report of one of 100 jobs: of a healthy one, and where ten are slow.
func BenchmarkReport(b *testing.B) {
	for _, slow := range []int{0, 10} {
		b.Run(fmt.Sprintf("slow-%d", slow), func(b *testing.B) {
			w := newWorld(b, 100, 8, 10, 11)
			for n := range 100 {
				w.start(1, n*8, n*8+1, n*8+2, n*8+3)
			}
			w.run(30)
			w.slow = func(g int, _ sched.Time) float64 {
				if g%8 == 0 && g < 8*slow {
					return 2
				}
				return 1
			}
			w.run(30)
			steps := make([]float64, 1024)
			for i := range steps {
				steps[i] = math.Exp(.02 * w.r.NormFloat64())
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				j := i % 100
				if j == 0 {
					w.now += minute
				}
				x := steps[i%1024]
				if j < slow {
					x *= 2
				}
				w.d.Report(w.now, sched.JobID(j), x)
			}
		})
	}
}

// Slow returns how many times as long as they should the steps of job j take, and since when; 1 where its attempt is
// not found slow.
func (d *Detector) Slow(j sched.JobID) (factor float64, since sched.Time) {
	if j >= 0 && int(j) < len(d.live) && d.live[j] != nil && d.live[j].slow {
		return factorOf(d.live[j].excess()), d.live[j].onset
	}
	return 1, 0
}
