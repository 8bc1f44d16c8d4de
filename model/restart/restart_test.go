package restart

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that batches are divided as documented, and what cannot be is said.
func TestDivide(t *testing.T) {
	for _, c := range []struct {
		global, width, limit int
		want                 string
	}{
		{256, 4, 0, "{64 1}"}, {256, 4, 64, "{64 1}"}, {256, 4, 63, "{32 2}"}, {256, 1, 64, "{64 4}"},
		{256, 4, 24, "{16 4}"},                 // 3 rounds would do, 4 leave no rest
		{100, 3, 0, "{33 1}"},                  // 99
		{100, 3, 20, "{16 2}"},                 // 96
		{96, 3, 20, "{16 2}"},                  //
		{7, 7, 1, "{1 1}"}, {7, 1, 2, "{1 7}"}, // 4 rounds would do, 7 leave no rest
		{7, 2, 1, "{1 4}"}, // 8, of at least one
		{3, 4, 0, "restart: batch of 3 on 4 GPUs, at most 0 on each, want at least one sample on each"},
		{0, 1, 0, "restart: batch of 0 on 1 GPUs, at most 0 on each, want at least one sample on each"},
		{1, 0, 0, "restart: batch of 1 on 0 GPUs, at most 0 on each, want at least one sample on each"},
		{1, 1, -1, "restart: batch of 1 on 1 GPUs, at most -1 on each, want at least one sample on each"},
	} {
		s, err := Divide(c.global, c.width, c.limit)
		got := fmt.Sprint(s)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d on %d, at most %d: %s, want %s", c.global, c.width, c.limit, got, c.want)
		}
	}
}

// Ensure, on random batches, that the limit holds, that a step has about the batch asked for, and that a job, which
// rounds, makes no fewer rounds.
func TestDivideProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		width := 1 + rng.IntN(64)
		global := width + rng.IntN(5000)
		limit := rng.IntN(200)
		s, err := Divide(global, width, limit)
		off := s.Samples(width) - global
		if err != nil || limit > 0 && s.PerGPU > limit || off >= width*s.Accum || -off >= width*s.Accum {
			t.Fatalf("%d on %d, at most %d: %v, %v", global, width, limit, s, err)
		}
		if s.PerGPU >= s.Accum && int(math.Round(float64(global)/float64(s.PerGPU*width))) < s.Accum {
			t.Fatalf("%d on %d, at most %d: %v, a job finds fewer rounds", global, width, limit, s)
		}
	}
	if scaling.PerGPU(2, 4, 3) != 1 || scaling.PerGPU(96, 2, 3) != 16 || scaling.PerGPU(96, 2, 0) != 48 {
		t.Error("samples on a GPU")
	}
}

// Ensure that the learning rate follows the batch by its rule, and is as it was where the batch is.
func TestScaling(t *testing.T) {
	for i, c := range []struct {
		s             scaling.Scaling
		sqr, variance float64
		want          float64
	}{{scaling.Unscaled, 1, 1, 1}, {scaling.Linear, 0, 0, 4}, {scaling.SquareRoot, 0, 0, 2}, {scaling.AdaScale, 0, 0, 2}, {scaling.AdaScale, 1, 1, 2 / 1.25},
		{scaling.AdaScale, 0, 1, 4},
		{scaling.AdaScale, 1, 0, 1}, {scaling.AdaScale, math.Inf(1), 0, 2}, {scaling.AdaScale, math.MaxFloat64, math.MaxFloat64, 2}} {
		if got := Factor(c.s, 1024, 256, c.sqr, c.variance); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d: %s: %v, want %v", i, c.s, got, c.want)
		}
		if got := Factor(c.s, 256, 256, c.sqr, c.variance); got != 1 {
			t.Errorf("%d: %s: %v at the batch itself", i, c.s, got)
		}
	}
	for _, w := range []string{"none", "linear", "sqrt", "adascale"} {
		if s, err := scaling.Parse(w); err != nil || s.String() != w {
			t.Error(s, err)
		}
	}
	if _, err := scaling.Parse("cube"); fmt.Sprint(err) != `lr_scaling "cube", want none, linear, sqrt or adascale` {
		t.Error(err)
	}
}

// Ensure that the loss is what is not saved, as far as a job is not trusted to save it, and within what is promised.
func TestLoss(t *testing.T) {
	hour, minute := sched.Time(time.Hour), sched.Time(time.Minute)
	for _, c := range []struct{ now, started, saved, want sched.Time }{
		{hour, 0, sched.None, hour}, {hour, 30 * minute, 10 * minute, 30 * minute},
		{hour, 30 * minute, 50 * minute, 10 * minute}, {hour, 0, 2 * hour, 0},
	} {
		if got := Age(c.now, c.started, c.saved); got != time.Duration(c.want) {
			t.Errorf("age %v, want %v", got, c.want)
		}
	}
	p := Price{Age: 600 * time.Second, Stop: 20 * time.Second, Grace: 30 * time.Second, Start: 40 * time.Second}
	for _, c := range []struct {
		h    History
		want float64
	}{{History{}, 660}, {History{6, 0}, 660}, {History{1, 1}, 360}, {History{9, 9}, 120}} {
		p.Saves = c.h.Saves()
		if got := p.Loss(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v s, want %v", c.h, got, c.want)
		}
	}
	p.Stop, p.Start, p.Saves = time.Hour, 0, 0
	if got := p.Loss(); got != 630 {
		t.Errorf("%v s, want age and grace, 630", got)
	}
}

// Ensure that an attempt runs for a while first, and that a job is not stopped more often than allowed.
func TestRails(t *testing.T) {
	at := func(minutes ...int) (times []sched.Time) {
		for _, m := range minutes {
			times = append(times, sched.Time(m)*sched.Time(time.Minute))
		}
		return times
	}
	for i, c := range []struct {
		rails   Rails
		started int
		restart time.Duration
		stopped []sched.Time
		want    int
	}{
		{DefaultRails, 100, time.Second, nil, 105},
		{DefaultRails, 100, 2 * time.Minute, nil, 120},
		{DefaultRails, 100, time.Second, at(50, 60, 70, 80, 90), 105},
		{DefaultRails, 100, time.Second, at(50, 60, 70, 80, 90, 100), 110},
		{DefaultRails, 100, time.Second, at(0, 1, 2, 50, 60, 70, 80, 90, 100), 110},
		{Rails{}, 100, time.Hour, at(99, 99, 99), 100},
	} {
		if got := c.rails.From(at(c.started)[0], c.restart, c.stopped); got != at(c.want)[0] {
			t.Errorf("%d: from %v, want %v", i, got, at(c.want)[0])
		}
	}
}

// Ensure that a resize pays when it is ahead at the end of the horizon.
func TestWorth(t *testing.T) {
	for i, c := range []struct {
		now, then        float64
		horizon, restart time.Duration
		want             bool
	}{
		{1, 2, 100 * time.Second, 49 * time.Second, true}, {1, 2, 100 * time.Second, 50 * time.Second, false},
		{1, 1, time.Hour, 0, false}, {2, 1, time.Hour, 0, false}, {0, 1, time.Minute, time.Second, true},
		{1, 100, time.Second, time.Minute, false},
		{0, 0, time.Hour, 0, false}, {0, 1, 0, time.Minute, false},
	} {
		if got := Worth(c.now, c.then, c.horizon, c.restart); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}
