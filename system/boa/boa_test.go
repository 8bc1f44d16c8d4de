package boa

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that time passed is charged at the number of GPUs that there was, not at that after a change.
func TestMeter(t *testing.T) {
	v := &sched.View{Pools: []sched.Pool{{Spec: sched.PoolSpec{GPUs: 4}}}}
	hour := sched.Time(time.Hour)
	var m meter
	for _, c := range []struct {
		at             sched.Time
		ordered, nodes int32
		hours          float64
	}{{hour, 2, 0, 0}, {2 * hour, 2, 2, 8}, {3 * hour, 1, 2, 16}, {4 * hour, 0, 0, 24}, {9 * hour, 5, 0, 24}} {
		v.Now, v.Pools[0].Ordered, v.Pools[0].Nodes = c.at, c.ordered, c.nodes
		if m.read(v); m.Hours != c.hours {
			t.Errorf("at %v: %v GPU-hours, want %v", c.at.Seconds(), m.Hours, c.hours)
		}
	}
	if got := m.take(10 * hour); got != 44 || m.Hours != 0 {
		t.Errorf("%v taken, %v left", got, m.Hours)
	}
}

// Ensure that beyond a node whole nodes are offered: all where curves are known, few where they are learned, whoever
// plans.
func TestOffer(t *testing.T) {
	p := Params{Known: Known{PerNode: 4, Curves: speedup.NewLearned(4, 40)}}
	m := newMenu(p)
	if got, want := m.offer(40), []int{1, 2, 3, 4, 8, 12, 16, 24, 32, 40}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	p.Curves = speedup.NewOracle(nil, 4, 30)
	for _, p.asPublished = range []bool{false, true} {
		m = newMenu(p)
		if got, want := m.offer(30), []int{1, 2, 3, 4, 8, 12, 16, 20, 24, 28}; !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// Ensure that budgets that make no sense are refused, and that memory cut short is.
func TestBad(t *testing.T) {
	p := Params{Known: Known{Curves: speedup.NewLearned(4, 8), Restart: func(string) time.Duration { return 0 }}}
	for _, c := range []struct {
		change func(*Params)
		want   string
	}{
		{func(*Params) {}, "budget 0, want GPUs rented on average, > 0"},
		{func(p *Params) { p.Budget, p.Month = 4, price.MonthRule{Budget: 9, Zone: time.UTC} },
			"want information=price"},
		{func(p *Params) { p.Priced, p.Month = true, price.MonthRule{Budget: 9} }, "no time zone"},
		{func(p *Params) {
			p.Budget, p.Mix = 4, []speedup.Class{{Model: "a",
				Chain: speedup.Chain{{Size: 1, Curve: speedup.Curve{Speed: []float64{0, 1}}}}}}
		}, `class "a": rate 0, want > 0`},
	} {
		bad := p
		c.change(&bad)
		if _, err := Exact(bad, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	p.Budget, p.Priced = 4, true
	w, err := newWidths(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{"", "\x01", "\x01\x02", "\xff", "\x01\x02\xff\xff\xff\xff\xff\xff"} {
		if err := w.LoadJob(1, []byte(b)); err == nil || err.Error() != "boa: memory of a job: cut short" {
			t.Errorf("%q: %v", b, err)
		}
	}
	rest := w.SaveRest(nil)
	if err := w.LoadRest(rest[:len(rest)/2]); err == nil {
		t.Error("half a memory was loaded")
	}
	if err := w.LoadRest(rest); err != nil || !reflect.DeepEqual(w.SaveRest(nil), rest) {
		t.Errorf("%v, or another memory", err)
	}
}
