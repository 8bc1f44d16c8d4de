package restart

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/scaling"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the learning rate follows the batch by its rule, and is as it was where the batch is.
func TestScaling(t *testing.T) {
	for i, c := range []struct {
		s             scaling.Scaling
		sqr, variance float64
		want          float64
	}{{scaling.Unscaled, 1, 1, 1}, {scaling.Linear, 0, 0, 4}, {scaling.SquareRoot, 0, 0, 2}, {scaling.AdaScale, 0, 0,
		2}, {scaling.AdaScale, 1, 1, 2 / 1.25},
		{scaling.AdaScale, 0, 1, 4},
		{scaling.AdaScale, 1, 0, 1}, {scaling.AdaScale, math.Inf(1), 0, 2}, {scaling.AdaScale, math.MaxFloat64,
			math.MaxFloat64, 2}} {
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
