package report_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// large returns a report of one system and so many jobs on 2,816 GPUs, in whole seconds.
func large(tb testing.TB, jobs int) *report.Report {
	tb.Helper()
	c, err := cluster.Load("352x8")
	if err != nil {
		tb.Fatal(err)
	}
	g := trace.Generator{Seed: 1, Jobs: jobs, Load: .9, GPUs: 2816, Users: 300, Mix: trace.PhillyMix(),
		Quantum: time.Second}
	line := new(timeline.Timeline)
	q := simulate.Request{Trace: trace.Generate(g), Cluster: c, System: "tiresias-las", Timeline: line}
	out, err := q.Run(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return &report.Report{Systems: []report.System{{Name: "tiresias-las", Result: out.Result, Jobs: out.PerJob,
		Timeline: line}}}
}

// Ensure that a report grows by 24 bytes at most with each job: 2.4 MB with 100,000.
func TestSize(t *testing.T) {
	sizes := []int{}
	for _, jobs := range []int{2000, 10000} {
		r := large(t, jobs)
		sizes = append(sizes, len(written(t, r)))
		if n := len(r.Systems[0].Timeline.Attempts); n < jobs {
			t.Fatalf("%d attempts of %d jobs, want one each at least", n, jobs)
		}
	}
	if per := float64(sizes[1]-sizes[0]) / 8000; per > 24 {
		t.Errorf("%.1f bytes a job, want at most 24", per)
	}
}

// BenchmarkReport writes the report of 100,000 jobs.
func BenchmarkReport(b *testing.B) {
	r := large(b, 100000)
	var file bytes.Buffer
	for b.Loop() {
		file.Reset()
		if _, err := r.Write(&file); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(file.Len()), "bytes")
	b.ReportMetric(float64(len(r.Systems[0].Timeline.Attempts)), "attempts")
}
