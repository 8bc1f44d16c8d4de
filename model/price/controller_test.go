package price

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"
)

func controller(t *testing.T, pay Pay, now int64, price float64) *Controller {
	t.Helper()
	c, err := NewController(pay, now, price)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Ensure that from any price spending comes to what was agreed, whatever the load, at calls close together or far
// apart. Spending falls as 1/sqrt(price) here, as power laws of exponent 1/2 have it.
func TestControllerFindsThePrice(t *testing.T) {
	for _, start := range []float64{0.001, 1, 500} {
		for _, seconds := range []int64{60, 3600} {
			c := controller(t, Pay{Average: 12}, 0, start)
			now := int64(0)
			for now < 10*86400 {
				now += seconds
				c.Spend(now, 48/math.Sqrt(c.Price())*float64(seconds)/3600, nil)
			}
			check(t, "price", c.Price(), 16, 1e-3)
		}
	}
}

// Ensure that where spending hardly answers to the price, which is far off at first, a controller that knows so has
// found it within two days, and one that does not has not.
func TestControllerResponse(t *testing.T) {
	const weak = 0.1
	off := func(r Response) float64 {
		c := controller(t, Pay{Average: 12}, 0, 1)
		for now := int64(600); now <= 2*86400; now += 600 {
			c.Spend(now, 12*math.Pow(c.Price()/50, -weak)/6, r)
		}
		return math.Abs(c.Price()/50 - 1)
	}
	if known, unknown := off(func(float64) float64 { return weak }), off(nil); known > 1e-3 || unknown < 0.1 {
		t.Errorf("price off by %.4f where the response is known, want at most 0.001; by %.4f where not, want more "+
			"than 0.1", known, unknown)
	}
	// Responses are bounded, whatever they say.
	for x, want := range map[float64]float64{0.5: 0.5, 0: leastResponse, math.NaN(): leastResponse, -1: leastResponse,
		math.Inf(1): 1} {
		if got := Response(func(float64) float64 { return x }).at(1); got != want {
			t.Errorf("a response of %v counts as %v, want %v", x, got, want)
		}
	}
}

// Ensure that noise of spending is made up for although the response differs by price: over 5,000 hours what was spent
// is within a hundredth of what was agreed. (With the response at the price of before, not half way, it is above.)
func TestControllerNoise(t *testing.T) {
	// from 20 down to 10, the response from 0 to 0.17 and back
	spending := func(p float64) float64 { return 10 + 10/(1+p) }
	response := func(p float64) float64 { return p / (1 + p) / (2 + p) }
	for seed := range int64(4) {
		rng, c := rand.New(rand.NewSource(seed)), controller(t, Pay{Average: 12.5}, 0, 1)
		spent, hours := 0.0, 5000.0
		for i := range int64(hours) * 6 {
			amount := spending(c.Price()) * 2 * rng.Float64() / 6
			c.Spend((i+1)*600, amount, response)
			spent += amount
		}
		check(t, "spent", spent/hours, 12.5, 0.01)
	}
}

// Ensure that a month's budget is spent by its end although the load doubles half way, and never overspent once
// stopped.
func TestControllerMonth(t *testing.T) {
	now := unix(t, time.UTC, "2026-01-01 00:00")
	c := controller(t, Pay{Month: MonthRule{Budget: 744, Zone: time.UTC}}, now, 1)
	for hour := range 31*24 - 1 {
		load := 1.0
		if hour > 15*24 {
			load = 2
		}
		now += 3600
		spent := load / math.Sqrt(c.Price())
		if c.Stopped() {
			spent = 0
		}
		c.Spend(now, spent, nil)
	}
	if spent := c.Month().Spent(); math.Abs(spent/744-1) > 0.02 {
		t.Errorf("%v spent of 744", spent)
	}
	c.Spend(now+1, 1000, nil)
	if !c.Stopped() {
		t.Error("not stopped")
	}
}

// Ensure that a long stop leaves a price from which there is a way back.
func TestControllerBounded(t *testing.T) {
	c := controller(t, Pay{Average: 1}, 0, 1)
	for i := range int64(1000) {
		c.Spend((i+1)*86400, 0, nil)
	}
	if c.Price() != leastPrice {
		t.Errorf("price %v", c.Price())
	}
	c.Spend(1000*86400, 5, nil)
	if c.Price() != leastPrice {
		t.Errorf("price %v after no time", c.Price())
	}
}

// Ensure that a state saved and loaded goes on as if nothing had happened, and that no other bytes are taken.
func TestControllerSaves(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	z := zone(t, "Asia/Tokyo")
	for _, pay := range []Pay{{Average: 3}, {Month: MonthRule{Budget: 2000, Carry: 100, Zone: z}, Gain: 0.5}} {
		c, twin := controller(t, pay, 1000, 2), controller(t, pay, 1000, 2)
		now := int64(1000)
		for range 200 {
			now += rng.Int63n(40000)
			amount := 30 * rng.Float64()
			c.Spend(now, amount, nil)
			twin.Spend(now, amount, nil)
			next := controller(t, pay, 0, 1)
			if err := next.Load(c.Save(nil)); err != nil {
				t.Fatal(err)
			}
			if c = next; c.Price() != twin.Price() || c.Stopped() != twin.Stopped() ||
				string(c.Save(nil)) != string(twin.Save(nil)) {
				t.Fatalf("%+v, want %+v", c, twin)
			}
		}
		good := c.Save(nil)
		for _, b := range [][]byte{nil, good[:5], append([]byte{9}, good[1:]...), append(good[:len(good):len(good)], 0),
			append([]byte{1}, make([]byte, len(good)-1)...)} {
			if err := c.Load(b); err == nil {
				t.Errorf("%v loaded", b)
			}
		}
		if string(c.Save(nil)) != string(good) {
			t.Error("changed by what was not loaded")
		}
	}
}

func TestControllerErrors(t *testing.T) {
	month := MonthRule{Budget: 1, Zone: time.UTC}
	for _, c := range []struct {
		pay   Pay
		price float64
		want  string
	}{
		{Pay{Average: 1}, 0, "controller: price 0, want > 0"},
		{Pay{Average: 1, Gain: -1}, 1, "controller: gain -1, want > 0"},
		{Pay{}, 1, "controller: average 0 with a month's budget 0, want one of them > 0"},
		{Pay{Average: 1, Month: month}, 1, "controller: average 1 with a month's budget 1, want one of them > 0"},
		{Pay{Month: MonthRule{Budget: 1}}, 1, "month: no time zone, want one"},
	} {
		if _, err := NewController(c.pay, 0, c.price); fmt.Sprint(err) != "price: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
