package order_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/dist"
	"github.com/trainyard/trainyard/model/gittins/gittinstest"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

func sample(t *testing.T, sizes ...float64) *dist.Empirical {
	t.Helper()
	e, err := dist.NewEmpirical(sizes)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Ensure that each queue has the quantum of its upper limit, the last an infinite one, and a static quantum replaces
// all: at the edges, where a table is exact, by the definition of the index.
func TestGittinsIndexPerQueue(t *testing.T) {
	e, limits := sample(t, 3, 8, 8, 20, 75, 400), []float64{10, 50}
	for _, c := range []struct {
		delta float64
		quota []float64 // by queue; one queue more than there is takes the last
	}{{0, []float64{10, 50, math.Inf(1), math.Inf(1)}}, {7, []float64{7, 7, 7, 7}}} {
		x := order.NewGittinsIndex(e, limits, c.delta)
		for q, quantum := range c.quota {
			for a, edges := 0.0, 0; !math.IsInf(a, 1); edges++ {
				got, next := x.At(a, q)
				if want := gittinstest.Index(e, a, quantum); math.Abs(got-want) > 1e-12*want {
					t.Errorf("delta %v, queue %d: index %v at %v, want %v", c.delta, q, got, a, want)
				}
				if !(next > a) || edges > 1000 {
					t.Fatalf("edge %v behind %v", next, a)
				}
				a = next
			}
		}
		if i, until := x.At(400, 0); i != 0 || !math.IsInf(until, 1) {
			t.Errorf("index %v until %v of a job that outlived all, want 0 for ever", i, until)
		}
	}
}

// Ensure that with queues the index of a job is asked for while it waits, when it comes to hold GPUs and when it enters
// another queue, and stays as it is while it runs, whatever it attains; and that no wake-up is asked for but demotions.
func TestIndexIsFrozenWhileRunning(t *testing.T) {
	e := sample(t, 4, 9, 30, 60, 200)
	x := order.NewGittinsIndex(e, []float64{20, 100}, 0)
	o, err := order.NewMLFQ([]float64{20, 100}, false, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	v := running()
	j := &v.Jobs[0]
	want := func(what string, a float64, q int32, until sched.Time) {
		t.Helper()
		index, _ := x.At(a, int(q))
		k, at := o.Key(v, 0)
		if (k != sched.Key{Level: int64(q), Value: -index}) || at != until {
			t.Errorf("%s: %+v until %v, want level %d, index %v until %v", what, k, at, q, index, until)
		}
	}
	j.Up, j.Attempt, j.State, j.Service = false, sched.Ended, sched.Waiting, 8
	want("waiting", 8, 0, sched.Never)
	o.Took(v, 0)
	want("holding", 8, 0, sched.Never)
	j.Up, j.Attempt, j.State = true, sched.Running, sched.Active
	for at := sched.Time(10e9); at < 16e9; at += 500e6 {
		v.Now = at
		want("running", 8, 0, 16e9)
	}
	v.Now = 16e9
	want("demoted", 20, 1, 56e9)
	o.Took(v, 0)
	v.Now = 30e9
	want("running on", 20, 1, 56e9)
	o.Lost(v, 0)
	want("stopping", 48, 1, 56e9)
	v.Now = 31e9
	want("still stopping", 50, 1, 56e9)
	j.Settle(v.Now)
	j.Up, j.Attempt, j.State = false, sched.Ended, sched.Waiting
	o.Took(v, 0)
	v.Now = 40e9
	want("holding again", 50, 1, sched.Never)
	o.Left(0)
	if b := o.SaveJob(0, nil); len(b) != 0 {
		t.Errorf("%d bytes are remembered of a job that left", len(b))
	}
}

// Ensure that in one queue the index follows the service attained, edge by edge, and each edge wakes once: when asked
// again at the time it gave, the next edge is a later one.
func TestIndexMovesInOneQueue(t *testing.T) {
	e := sample(t, 9, 10, 11, 40, 41, 300)
	x := order.NewGittinsIndex(e, nil, 0)
	o, err := order.NewMLFQ(nil, false, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	v := running() // 2 GPUs, 8 GPU-seconds at 10 s
	o.Took(v, 0)
	for edge := 8.0; ; {
		index, next := x.At(edge, 0)
		k, until := o.Key(v, 0)
		if k.Value != -index {
			t.Fatalf("index %v at %v, want %v", -k.Value, edge, index)
		}
		if math.IsInf(next, 1) {
			if until != sched.Never {
				t.Errorf("asked again at %v after the last edge, want never", until)
			}
			break
		}
		exact := 10 + (next-8)/2
		if d := until.Seconds() - exact; d < -1e-9 || d > 2e-9 || until <= v.Now {
			t.Fatalf("edge %v is reached at %v s, asked again at %v", next, exact, until)
		}
		v.Now, edge = until, next
	}
	v.Now = 500e9
	if k, _ := o.Key(v, 0); k.Value != 0 {
		t.Errorf("index %v of a job that outlived all, want 0", -k.Value)
	}
	o.Lost(v, 0)
	if _, until := o.Key(v, 0); until != sched.Never {
		t.Errorf("a job that waits is asked again at %v, want never", until)
	}
}

// finish has job 0 of v finish with a service in GPU-seconds.
func finish(g *order.LearnedGittins, v *sched.View, service float64, o sched.Outcome) {
	j := &v.Jobs[0]
	j.Up, j.Attempt, j.Service, j.Run = false, sched.Ended, sched.GPUSeconds(service), time.Duration(service/4*1e9)
	g.Observe(v, &sched.Event{Kind: sched.AttemptEnded, Outcome: o})
}

func learned(t *testing.T, limits []float64, seconds bool) *order.LearnedGittins {
	t.Helper()
	g, err := order.NewLearnedGittins(limits, seconds, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// indexAt returns the index of a waiting job of the given service in the first queue.
func indexAt(g *order.LearnedGittins, service float64) float64 {
	v := running()
	j := &v.Jobs[0]
	j.Up, j.Attempt, j.State = false, sched.Ended, sched.Waiting
	j.Service, j.Run = sched.GPUSeconds(service), time.Duration(service*1e9)
	g.Left(0)
	k, _ := g.Key(v, 0)
	g.Left(0)
	return -k.Value
}

// Ensure that sizes are learned from the jobs that finish, in the unit of the limits and from nothing else, that
// nothing is known before the first sixteen, and that the revision rises exactly when the index may change.
func TestLearnedGittinsLearns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, seconds := range []bool{false, true} {
		g, v := learned(t, []float64{1000}, seconds), running()
		unit := 1.0
		if seconds {
			unit = 4
		}
		var sizes, used []float64
		for n := range 60 {
			was, before := g.Revision(), indexAt(g, 0)
			finish(g, v, 777, []sched.Outcome{sched.Preempted, sched.NodeLost, sched.Failed, sched.Cancelled}[n%4])
			g.Observe(v, &sched.Event{Kind: sched.AttemptStarted, Outcome: sched.Finished})
			size := float64(1 + r.IntN(500))
			finish(g, v, size, sched.Finished)
			sizes = append(sizes, size/unit)
			if g.Revision() != was {
				used = slices.Clone(sizes)
			} else if indexAt(g, 0) != before {
				t.Fatalf("index changed at the same revision")
			}
			want := 0.0
			if used != nil {
				want = gittinstest.Index(sample(t, used...), 0, 1000)
			}
			if got := indexAt(g, 0); math.Abs(got-want) > 1e-12 || (want == 0) != (n < dist.FirstCount-1) {
				t.Fatalf("in seconds %v, after %d: index %v, want %v", seconds, n+1, got, want)
			}
		}
	}
}

// Ensure that memory comes back the same at any moment: the same revision, the same index at every service, the same
// queue places, and the same future.
func TestLearnedGittinsMemory(t *testing.T) {
	limits := []float64{30, 300}
	g, v, r := learned(t, limits, false), running(), rand.New(rand.NewPCG(2, 1))
	v.Jobs = append(v.Jobs, sched.Job{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, State: sched.Waiting})
	for n := range 200 {
		g.Key(v, 1)
		back := learned(t, limits, false)
		if err := back.LoadRest(g.SaveRest(nil)); err != nil {
			t.Fatal(err)
		}
		if err := back.LoadJob(1, g.SaveJob(1, nil)); err != nil {
			t.Fatal(err)
		}
		if back.Revision() != g.Revision() || !bytes.Equal(back.SaveRest(nil), g.SaveRest(nil)) ||
			!bytes.Equal(back.SaveJob(1, nil), g.SaveJob(1, nil)) {
			t.Fatalf("after %d: memory differs from what was saved", n)
		}
		size := float64(1 + r.IntN(900))
		finish(g, v, size, sched.Finished)
		finish(back, v, size, sched.Finished)
		if back.Revision() != g.Revision() {
			t.Fatalf("after %d: revision %d, want %d", n, back.Revision(), g.Revision())
		}
		for a := 0.0; a < 1000; a += 37 {
			if x, y := indexAt(back, a), indexAt(g, a); x != y {
				t.Fatalf("after %d: index %v at %v, want %v", n, x, a, y)
			}
		}
		if r.IntN(3) == 0 {
			g = back
		}
	}
}

// Ensure that memory which is cut short, too long or altered in its counts is refused.
func TestLearnedGittinsMalformed(t *testing.T) {
	g, v := learned(t, []float64{30}, false), running()
	g.Took(v, 0)
	v.Now = 40e9
	g.Key(v, 0) // demoted: a note is kept
	for n := range 20 {
		finish(g, v, float64(n), sched.Finished)
	}
	rest, job := g.SaveRest(nil), g.SaveJob(0, nil)
	if err := learned(t, []float64{30}, false).LoadRest(rest); err != nil {
		t.Fatal(err)
	}
	for n := range rest {
		if learned(t, []float64{30}, false).LoadRest(rest[:n]) == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(rest))
		}
	}
	if learned(t, []float64{30}, false).LoadRest(append(slices.Clone(rest), 0)) == nil {
		t.Error("a byte too many is accepted")
	}
	for n := 1; n < len(job); n++ { // none at all is a job of which nothing is known
		if learned(t, []float64{30}, false).LoadJob(0, job[:n]) == nil {
			t.Errorf("%d of %d bytes of a job are accepted", n, len(job))
		}
	}
	if learned(t, nil, false).LoadJob(0, job) == nil {
		t.Error("a queue that does not exist is accepted")
	}
	for _, b := range [][]byte{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, {0x80}, {0}, {1, 0}} {
		if learned(t, nil, false).LoadRest(b) == nil {
			t.Errorf("%x is accepted", b)
		}
	}
}
