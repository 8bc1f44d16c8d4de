package gavel_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/model/interference"
	"github.com/trainyard/trainyard/replica/gavel"
)

func open(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(filepath.Join(shareddata.DataDir(t), "colocation/gavel", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// rates returns the throughputs on V100s.
func rates(t testing.TB) gavel.Rates {
	t.Helper()
	pairs, err := interference.ReadGavel(open(t, "simulation_throughputs.json"), "throughputs")
	if err != nil {
		t.Fatal(err)
	}
	r := gavel.Rates{Alone: make(map[gavel.Kind]float64), Shared: make(map[[2]gavel.Kind][2]float64)}
	for _, p := range pairs {
		if p.Type != "v100" {
			continue
		}
		var kinds [2]gavel.Kind
		for k := range kinds {
			kinds[k] = gavel.Kind{Model: p.Models[k], GPUs: int(p.Width)}
			r.Alone[kinds[k]] = p.Alone[k]
		}
		r.Shared[kinds] = p.Shared
	}
	return r
}

// trace returns the jobs of a trace of ten columns.
func trace(t testing.TB, name string) (jobs []gavel.Job) {
	t.Helper()
	in := csv.NewReader(open(t, name))
	in.Comma, in.LazyQuotes = '\t', true
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		steps, err1 := strconv.ParseInt(row[5], 10, 64)
		gpus, err2 := strconv.Atoi(row[6])
		submit, err3 := strconv.ParseFloat(row[9], 64)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(strings.Join(row, " "))
		}
		jobs = append(jobs, gavel.Job{ID: strconv.Itoa(i), Submit: submit, Kind: gavel.Kind{Model: row[0], GPUs: gpus},
			Steps: steps})
	}
	return jobs
}

// Reference: the simulator of Gavel, run on its physical_cluster/max_min_fairness.trace, 36 V100s, rounds of 360 s,
// seed 0. Ensure that average JCT and utilisation are as it prints them.
func TestGolden(t *testing.T) {
	jobs, rates := trace(t, "max_min_fairness.trace"), rates(t)
	for _, c := range []struct {
		policy gavel.Policy
		want   string
	}{
		{gavel.FIFO, "12464.078 s, 0.638"}, {gavel.FIFOPerf, "12722.813 s, 0.638"},
		{gavel.FIFOPacked, "12652.912 s, 0.635"}, {gavel.Gandiva, "11728.987 s, 0.603"},
	} {
		p := gavel.Params{Policy: c.policy, GPUs: 36, Rates: rates}
		if err := p.Validate(jobs); err != nil {
			t.Fatal(err)
		}
		res := gavel.Run(jobs, p)
		if got := fmt.Sprintf("%.3f s, %.3f", res.AvgJCT, res.Busy); got != c.want {
			t.Errorf("%v: %s, want %s", c.policy, got, c.want)
		}
	}
}

// Ensure that the seed moves gandiva's average by less than 5 %.
func TestGandivaSeeds(t *testing.T) {
	jobs, rates := trace(t, "max_min_fairness.trace"), rates(t)
	for seed := range uint32(20) {
		res := gavel.Run(jobs, gavel.Params{Policy: gavel.Gandiva, GPUs: 36, Rates: rates, Seed: seed})
		if off := res.AvgJCT/11728.987 - 1; off < -.05 || off > .05 {
			t.Errorf("seed %d: %.3f s, %+.1f %%", seed, res.AvgJCT, 100*off)
		}
	}
}

func BenchmarkGandiva(b *testing.B) {
	jobs, rates := trace(b, "max_min_fairness.trace"), rates(b)
	b.ReportAllocs()
	for b.Loop() {
		gavel.Run(jobs, gavel.Params{Policy: gavel.Gandiva, GPUs: 36, Rates: rates})
	}
}
