package power_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

const second = sched.Time(time.Second)

func prices(t *testing.T, src string) *power.Series {
	t.Helper()
	s, err := power.ReadPrices(strings.NewReader(src), "f")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that a series is a step function, also before its origin and for ever after, and that a kWh costs its price.
func TestSeries(t *testing.T) {
	s := prices(t, "start,price\n0,0.2\n3600,-0.1\n7200.5,0.4\n")
	for at, want := range map[sched.Time]float64{-1: .2, 0: .2, 3600*second - 1: .2, 3600 * second: -.1,
		7200 * second: -.1, 7201 * second: .4, sched.Never: .4} {
		if got := s.At(at); got != want {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
	if a, b := s.Next(0), s.Next(7201*second); a != 3600*second || b != sched.Never {
		t.Errorf("next %v, %v", a, b)
	}
	if got := s.Of(1000, 0, 7200*second); math.Abs(got-.1) > 1e-15 {
		t.Errorf("1 kW for two hours costs %v, want 0.2 - 0.1", got)
	}
	if got := power.Constant(.3).Of(2000, second, 3601*second); math.Abs(got-.6) > 1e-15 {
		t.Errorf("2 kWh cost %v, want 0.6", got)
	}
}

// Ensure that an integral is what a sum over small pieces is, and that those of neighbours add up.
func TestIntegral(t *testing.T) {
	s := prices(t, "start,price\n0,3\n2,1\n5,0\n6,7\n")
	r := rand.New(rand.NewPCG(1, 1))
	naive := func(a, b sched.Time) (sum float64) {
		for at := a; at < b; at += second / 4 {
			sum += s.At(at) / 4
		}
		return sum
	}
	for range 500 {
		a := sched.Time(r.IntN(40)) * second / 4
		b := a + sched.Time(r.IntN(40))*second/4
		m := a + (b-a)/2/(second/4)*(second/4)
		if got, want := s.Integral(a, b), naive(a, b); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v to %v: %v, want %v", a, b, got, want)
		}
		if got, want := s.Integral(a, m)+s.Integral(m, b), s.Integral(a, b); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%v to %v to %v: %v, want %v", a, m, b, got, want)
		}
	}
}

// Ensure that a broken series is refused with its line and what is wanted.
func TestSeriesErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "line 1: empty, want a header line and rows"},
		{"start,price\n", "line 1: no rows, want one that starts at 0"},
		{"start,grams_per_kwh\n0,1\n", `line 1: no column "price", want the columns start, price`},
		{"start,price,x\n0,1,2\n", `line 1: unknown column "x", want the columns start, price`},
		{"start,price\n5,1\n", "line 2: start 5 first, want 0: what holds before is not known"},
		{"start,price\n0,1\n9,1\n9,2\n", "line 4: start 9 after 9s, want rising starts"},
		{"start,price\n0,NaN\n", `line 2: price "NaN", want a number from -1e+09 to 1e+09`},
		{"start,price\n-1,1\n", `line 2: start "-1", want a number from 0 to 1e+09`},
		{"start,price\n0\n", "line 2: 1 fields, want 2 as in the header"},
	} {
		if _, err := power.ReadPrices(strings.NewReader(c.src), "f"); err == nil || err.Error() != "power: f: "+c.want {
			t.Errorf("%q:\n got %v\nwant power: f: %s", c.src, err, c.want)
		}
	}
	if _, err := power.ReadCarbon(strings.NewReader("start,grams_per_kwh\n0,-1\n"), "f"); err == nil {
		t.Error("negative carbon")
	}
}

func FuzzSeries(f *testing.F) {
	f.Add("start,price\n0,0.2\n3600,-0.1\n")
	f.Add("start,grams_per_kwh\n0,400\n1e9,0\n")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := power.ReadPrices(strings.NewReader(src), "f")
		c, err2 := power.ReadCarbon(strings.NewReader(src), "f")
		for _, s := range []*power.Series{p, c} {
			if s == nil {
				continue
			}
			if x := s.Of(1e6, 0, sched.Never); math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatal(x)
			}
		}
		for _, err := range []error{err, err2} {
			if err != nil && !strings.HasPrefix(err.Error(), "power: f: line ") {
				t.Fatal(err)
			}
		}
	})
}
