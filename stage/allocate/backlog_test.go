package allocate

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the worked example 8 comes out, within bounds whatever is asked.
func TestDrains(t *testing.T) {
	for _, c := range []struct {
		backlog float64
		gpus    int
		load    float64
		want    float64
	}{
		{6000, 8, 0, 750}, {6000, 8, .5, 1500}, {6000, 8, 2, 15000},
		{0, 8, 0, 60}, {1e300, 8, 0, 604800}, {1, 0, 0, 604800},
	} {
		if got := step.Drains(c.backlog, c.gpus, c.load); math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Ensure that jobs that come at once make no load, that those that come one after the other do, and that they are
// forgotten.
func TestLoad(t *testing.T) {
	var burst, steady backlog
	now := sched.Time(0).Add(time.Hour)
	for i := range 100 {
		burst.note(&chosen, now, 3600)
		steady.note(&chosen, now.Add(time.Duration(i)*6*time.Minute), 3600)
	}
	if got := burst.load(&chosen, now, 4); got != 0 {
		t.Errorf("load %v of a burst, want none", got)
	}
	end := now.Add(99 * 6 * time.Minute)
	if got := steady.load(&chosen, end, 10); math.Abs(got-1) > 0.02 { // ten GPU-hours an hour, for ten GPUs
		t.Errorf("load %v, want 1", got)
	}
	if got := steady.load(&chosen, end.Add(7*time.Hour), 10); got != 0 {
		t.Errorf("load %v seven hours later", got)
	}
	if steady.load(&chosen, end, 0) != 0 {
		t.Error("a load on no GPUs")
	}
}

// Ensure that the horizon rises at once, falls by a level in a quarter of an hour, and does not follow a square wave.
func TestHorizonFallsSlowly(t *testing.T) {
	var b backlog
	now := sched.Time(0).Add(time.Minute)
	if got := b.horizon(&chosen, now, 80000, 8); math.Abs(math.Log2(got/10000)) > 1./8 {
		t.Errorf("horizon %v, want about 10000", got)
	}
	if got := b.horizon(&chosen, now, 800000, 8); math.Abs(math.Log2(got/100000)) > 1./8 {
		t.Errorf("horizon %v, want about 100000 at once", got)
	}
	top := b.level
	for i := range 4 * 24 { // a day of five minutes with much work, five with little
		now = now.Add(5 * time.Minute)
		b.horizon(&chosen, now, []float64{1000, 800000}[i%2], 8)
		if b.level < top-2 || b.level > top {
			t.Fatalf("level %d, want %d or at most two less", b.level, top)
		}
	}
	for range top {
		now = now.Add(15 * time.Minute)
		was := b.level
		if b.horizon(&chosen, now, 0, 8); was-b.level > 1 {
			t.Fatalf("from level %d to %d at once", was, b.level)
		}
	}
	if b.level != 0 {
		t.Errorf("level %d in the end, want 0", b.level)
	}
}

var chosen = Chosen()

// Ensure that weights are what priorities, waiting and deadlines make them, and finite whatever they are.
func TestWeights(t *testing.T) {
	now, hour := sched.Time(0).Add(100*time.Hour), time.Hour
	job := func(priority int32, waited time.Duration, deadline sched.Time) sched.Job {
		return sched.Job{Spec: &sched.JobSpec{Priority: priority, Deadline: deadline}, Arrived: now.Add(-waited)}
	}
	for _, c := range []struct {
		job  sched.Job
		want float64
	}{
		{job(0, 0, 0), 1}, {job(3, 0, 0), 8}, {job(-2, 0, 0), .25},
		{job(1e6, 0, 0), 1024}, {job(-1e6, 0, 0), 1. / 1024},
		{job(0, 23*hour, 0), 1}, {job(0, 48*hour, 0), 2},
		{job(0, 0, now.Add(100*hour)), 1},  // far away
		{job(0, 0, now.Add(3*hour/2)), 2},  // half an hour of slack, an hour of horizon
		{job(0, 0, now.Add(hour)), 16},     // none
		{job(0, 0, now.Add(-hour/2)), 8.5}, // half of the time gone that it takes
		{job(0, 0, now.Add(-9*hour)), 1},   // missed long ago
	} {
		if got := weightOf(&chosen, now, &c.job, 3600, 3600); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: weight %v, want %v", *c.job.Spec, got, c.want)
		}
	}
}
