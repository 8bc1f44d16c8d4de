package price

import (
	"fmt"
	"math"
	"testing"
)

// Ensure that what makes no sense is one clear error, from every method.
func TestErrors(t *testing.T) {
	good := Class{Name: "a", Rate: 1, Configs: []Config{{GPUs: 1}}, Times: [][]float64{{2}}}
	change := func(f func(*Class)) []Class { c := good; f(&c); return []Class{c} }
	inf := math.Inf(1)
	for _, c := range []struct {
		classes []Class
		want    string
	}{
		{nil, "price: no classes, want one"},
		{change(func(c *Class) { c.Rate = 0 }), `price: class "a": rate 0, want > 0`},
		{change(func(c *Class) { c.Rate = math.NaN() }), `price: class "a": rate NaN, want > 0`},
		{change(func(c *Class) { c.Rate = inf }), `price: class "a": rate +Inf, want > 0`},
		{change(func(c *Class) { c.Weight = -1 }), `price: class "a": weight -1, want >= 0`},
		{change(func(c *Class) { c.Restart = -1 }), `price: class "a": restart -1, want >= 0`},
		{change(func(c *Class) { c.Configs = nil }), `price: class "a": no configurations, want one`},
		{change(func(c *Class) { c.Configs = []Config{{}} }), `price: class "a": 0 GPUs at price 0, want > 0 and >= 0`},
		{change(func(c *Class) { c.Times = nil }), `price: class "a": no phases, want one`},
		{change(func(c *Class) { c.Times = [][]float64{{1}, {}} }), `price: class "a": phase 1 has 0 times, want 1`},
		{change(func(c *Class) { c.Times = [][]float64{{0}} }),
			`price: class "a": phase 0 takes 0 on 1 GPUs, want > 0`},
		{change(func(c *Class) { c.Times = [][]float64{{inf}} }),
			`price: class "a": phase 0 cannot be run, want a configuration in which it can`},
		{[]Class{good}, "price: budget 1.5, want at least 2"},
	} {
		for name, method := range map[string]func() (*Plan, error){
			"exact": func() (*Plan, error) {
				x, err := NewExact(c.classes)
				if err != nil {
					return nil, err
				}
				return x.At(1.5)
			},
			"glue": func() (*Plan, error) {
				g, err := NewGlue(c.classes, 1)
				if err != nil {
					return nil, err
				}
				return g.At(1.5)
			},
			"one":   func() (*Plan, error) { return OneWidth(c.classes, 1.5) },
			"equal": func() (*Plan, error) { return EqualWidth(c.classes, 1.5) },
		} {
			if _, err := method(); fmt.Sprint(err) != c.want {
				t.Errorf("%s: error %v, want %s", name, err, c.want)
			}
		}
	}
	if _, err := OneWidth([]Class{{Name: "b", Rate: 1, Configs: []Config{{GPUs: 1}, {GPUs: 2}},
		Times: [][]float64{{1, inf}, {inf, 1}}}}, 9); fmt.Sprint(err) !=
		`price: class "b": no configuration for all phases, want one` {
		t.Error(err)
	}
	if _, err := NewExact([]Class{good}); err != nil {
		t.Error(err)
	}
	if _, err := Continuous(nil, 1); fmt.Sprint(err) != "price: no work, want some" {
		t.Error(err)
	}
	if _, err := Continuous([]Smooth{smooth(1, 1, 1, Power{0.5})}, math.NaN()); fmt.Sprint(err) !=
		"price: budget NaN, want at least 1" {
		t.Error(err)
	}
	if _, err := Continuous([]Smooth{smooth(1, 1, 0, Power{0.5})}, 1); err == nil {
		t.Error("work of no size taken")
	}
}

// Ensure that one way to run leaves nothing to decide, and that no budget is too large.
func TestOnePoint(t *testing.T) {
	x := prepared(t, []Class{{Name: "a", Rate: 2, Restart: 1, Configs: []Config{{GPUs: 3}},
		Times: [][]float64{{1}, {4}}}})
	for _, budget := range []float64{36, 50, 1e300} {
		p := planAt(t, x.At, budget)
		if p.Usage != 36 || p.Delay != 6 || p.Price != 0 || p.Classes[0].Other != nil {
			t.Errorf("budget %v: %+v", budget, p)
		}
	}
	if x.Frontier().Least() != 36 || x.Frontier().Most() != 36 {
		t.Errorf("%+v", x.Frontier())
	}
}

// FuzzHull checks that no points make a hull that is none.
func FuzzHull(f *testing.F) {
	f.Add(1.0, 1.0, 2.0, 0.5, 3.0, 0.4)
	f.Add(1.0, 1.0, 1.0, 1.0, 1.0, 0.5)
	f.Fuzz(func(t *testing.T, a, b, c, d, e, g float64) {
		list := []Point{{a, b, 0}, {c, d, 1}, {e, g, 2}}
		for _, p := range list {
			if !(p.Cost >= 0 && p.Cost < 1e100 && p.Delay > 0 && p.Delay < 1e100) {
				return
			}
		}
		hull := Hull(list)
		for i := range hull {
			if i > 0 && !(hull[i].Cost > hull[i-1].Cost && hull[i].Delay < hull[i-1].Delay) {
				t.Fatal(hull)
			}
		}
	})
}
