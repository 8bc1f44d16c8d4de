package simulate

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
)

// Ensure that worth with a budget decides as boa-exact does with information=price as long as more GPUs are to be had:
// the same jobs end at the same instants, for the same money.
func TestWorthRentsAsBOA(t *testing.T) {
	m := ownRun()
	m.Hours, m.WarmUp = 30, 10
	for _, budget := range []float64{12, 24, 40} {
		boa, spent, err := m.Run(t.Context(), "boa-exact", map[string]string{"information": "price"}, budget, 1)
		if err != nil {
			t.Fatal(err)
		}
		worth, paid, err := m.Run(t.Context(), "worth", nil, budget, 1)
		if err != nil {
			t.Fatal(err)
		}
		if paid != spent || !reflect.DeepEqual(worth.PerJob, boa.PerJob) {
			t.Errorf("%v GPUs: %v paid, JCT %v s; want %v, %v s, as boa-exact", budget, paid, worth.AvgJCT, spent,
				boa.AvgJCT)
		}
	}
}

// Ensure that worth rents no more than it may, ends all jobs there, and in less time than boa-exact, which has those
// that came first be as wide as the price says while others wait.
func TestWorthAtCap(t *testing.T) {
	m := ownRun()
	m.Hours, m.WarmUp = 40, 10
	for _, nodes := range []int{4, 5} {
		gpus := 4 * nodes
		boa, _, err := m.Run(t.Context(), "boa-exact", map[string]string{"information": "price",
			"max_nodes": fmt.Sprint(nodes)}, 24, 1)
		if err != nil {
			t.Fatal(err)
		}
		out, paid, err := m.Run(t.Context(), "worth", map[string]string{"max_gpus": fmt.Sprint(gpus)}, 24, 1)
		if err != nil {
			t.Fatal(err)
		}
		if out.Unfinished > 0 || paid > float64(gpus) || !(m.SettledJCT(out) < m.SettledJCT(boa)) {
			t.Errorf("%d GPUs: %d unfinished, %v paid, JCT %v s; want none, at most %v, less than %v s", gpus,
				out.Unfinished, paid, m.SettledJCT(out), gpus, m.SettledJCT(boa))
		}
	}
}

// Ensure that the money of a month stops worth too, and that what cannot be rented is refused.
func TestWorthBudgets(t *testing.T) {
	m := ownRun()
	m.Hours = 48
	month := map[string]string{"month_budget": "2000", "month_from": "2026-01-31T00:00:00+01:00",
		"month_zone": "Europe/Berlin"}
	paid := &paidFor{to: 24 * 3600e9}
	s := Request{Trace: m.Trace(2), Cluster: rentable(4, 50), System: "worth", Apps: m.Apps, Settings: month,
		Sinks: []eventlog.Sink{paid}}
	if out, err := s.Run(t.Context()); err != nil || out.Unfinished > 0 {
		t.Fatal(err, out)
	}
	if spent := 24 * paid.mean(); spent > 2000./31+.5 || spent < 2000./31*.9 {
		t.Errorf("%.2f GPU-hours spent in January, want nearly %.2f", spent, 2000./31)
	}
	for _, c := range []struct {
		cluster  string
		settings map[string]string
		want     string
	}{
		{"2x4:t4+2x4:a100", map[string]string{"budget": "8"}, "GPUs of 2 types, want one"},
		{"4x4", map[string]string{"budget": "8", "provision": "reserve", "reserve": "8"}, "want one of them"},
		{"4x4", map[string]string{"budget": "inf"}, "want GPUs rented on average"},
		{"4x4", map[string]string{"month_budget": "9", "month_zone": "Nowhere"}, "want a time zone"},
	} {
		on, err := cluster.Load(c.cluster)
		if err != nil {
			t.Fatal(err)
		}
		s := Request{Trace: m.Trace(1), Cluster: on, System: "worth", Apps: m.Apps, Settings: maps.Clone(c.settings)}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v: %v, want %s", c.cluster, c.settings, err, c.want)
		}
	}
}
