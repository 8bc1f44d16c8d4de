package controller

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Ensure that each metric that the dashboard of a cluster asks for is among the figures of a controller that decides,
// and each label by which it adds up.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana/cluster.json")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMetrics()
	m.standing.Store(&standing{pools: []poolStanding{{name: "spot"}}})
	r := prometheus.NewPedanticRegistry()
	if err = r.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names, labels := []string{}, []string{"le"}
	for _, f := range families {
		names = append(names, f.GetName(), f.GetName()+"_bucket")
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
	}
	asked := regexp.MustCompile(`trainyard_[a-z_]+`).FindAllString(string(text), -1)
	if len(asked) < 12 {
		t.Fatalf("it asks for %d metrics, want more", len(asked))
	}
	for _, name := range asked {
		if !slices.Contains(names, name) {
			t.Errorf("it asks for %s, which no controller has", name)
		}
	}
	for _, by := range regexp.MustCompile(`by \(([a-z, ]+)\)`).FindAllStringSubmatch(string(text), -1) {
		for label := range strings.SplitSeq(by[1], ", ") {
			if !slices.Contains(labels, label) {
				t.Errorf("it adds up by %s, which no figure of a controller has", label)
			}
		}
	}
}
