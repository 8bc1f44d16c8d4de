package trace

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// public reads one of the public traces.
func public(t *testing.T, name string) *Trace {
	t.Helper()
	got, err := Read(filepath.Join(shareddata.DataDir(t), "traces", name), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Ensure that Philly holds what was published of it, or measured independently.
//
// Reference: specification of traces, 1.2, 1.4, 3.1, 3.3, 4.3.
func TestPhillyFacts(t *testing.T) {
	philly := public(t, "philly/philly_gpu_jobs.csv.gz")
	s := Describe(philly)
	near(t, "mean GPUs", s.MeanGPUs, 1.742, .0005)
	near(t, "mean run time", s.Duration.Mean.Seconds(), 35595, .5)
	groups := map[string]int{"6214e9": 42020, "11cb48": 16909, "6c71a0": 11039, "b436b2": 7765, "ee9e8c": 5768,
		"0e4a51": 2638,
		"103959": 2099, "7f04ca": 1494, "ed69ec": 1299, "2869ce": 992, "e13805": 682, "": 111549 - 92744}
	for _, g := range s.Groups {
		if n, ok := groups[g.Name]; ok && g.Jobs != n {
			t.Errorf("virtual cluster %q has %d jobs, want %d", g.Name, g.Jobs, n)
		}
	}
	zero, month, long, window, sum := 0, 0, 0, 0, 0.0
	from := time.Date(2017, 10, 1, 0, 0, 27, 0, time.UTC)
	until := from.Add(61*24*time.Hour - time.Minute)
	for i := range philly.Jobs {
		j := &philly.Jobs[i]
		zero += btoi(j.Duration == 0)
		month += btoi(j.Duration > 30*24*time.Hour)
		long += btoi(j.Duration > 48*time.Hour)
		if at := philly.Origin.Add(time.Duration(j.Spec.Submit)); !at.Before(from) && !at.After(until) {
			window++
			sum += j.Duration.Seconds()
		}
	}
	if zero != 10 || month != 173 || window != 90954 || math.Floor(sum/float64(window)) != 29525 {
		t.Errorf("%d zero durations, %d of over 30 days, %d jobs in October and November with a mean of %.1f s, want "+
			"10, 173, 90954, 29525",
			zero, month, window, sum/float64(window))
	}
	near(t, "share over 48 h", float64(long)/111549, .041, .0005)
	pollux := Describe(public(t, "philly/philly_pollux_subset.csv.gz"))
	near(t, "mean GPUs of Pollux's subset", pollux.MeanGPUs, 1.304, .0005)
	near(t, "mean run time of Pollux's subset", pollux.Duration.Mean.Seconds(), 13136, .5)
	near(t, "single GPUs of Pollux's subset", pollux.Widths[0].JobShare, .932, .0005)
}

// Ensure that hours and weekdays are those that were measured for the dense part of Philly and for Venus.
//
// Reference: specification of traces, 3.1.
func TestArrivalFacts(t *testing.T) {
	venus := public(t, "venus/venus_gpu_jobs.csv.gz")
	s := Describe(venus)
	near(t, "Venus, 1 GPU", s.Widths[0].JobShare, .5184, .00005)
	upTo8 := 0.0
	for _, w := range s.Widths {
		if w.GPUs <= 8 {
			upTo8 += w.JobShare
		}
	}
	near(t, "Venus, up to 8 GPUs", upTo8, .8998, .00005)
	hours := []float64{.90, .66, .60, .39, .27, .21, .19, .23, .38, .80, 1.31, 1.48, 1.17, 1.31, 1.57, 1.67, 1.72, 1.72,
		1.25, 1.30, 1.33, 1.36, 1.16, 1.05}
	s = Describe(between(venus, time.Date(2020, 4, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2020, 9, 27, 0, 0, 0, 0, time.UTC)))
	for h, want := range hours {
		near(t, "Venus at hour "+strconv.Itoa(h), float64(s.Arrivals.Hours[h])*24/float64(s.Jobs), want, .0055)
	}
	philly := public(t, "philly/philly_gpu_jobs.csv.gz")
	s = Describe(between(philly, time.Date(2017, 10, 3, 0, 0, 0, 0, time.UTC),
		time.Date(2017, 12, 15, 0, 0, 0, 0, time.UTC)))
	for h, want := range []float64{1.30, 1.00, 1.27, 1.21, .89, 1.17, 1.56, 1.89, 1.12, .93, .78, .69, .60, .63, .48,
		.62, 1.03, .75, .86, .74, 1.00, .91, 1.30, 1.25} {
		near(t, "Philly at hour "+strconv.Itoa(h), float64(s.Arrivals.Hours[h])*24/float64(s.Jobs), want, .0055)
	}
}

// between is the part of t that was submitted from the one time of the clock to before the other.
func between(t *Trace, from, until time.Time) *Trace {
	part := &Trace{Origin: t.Origin}
	for _, j := range t.Jobs {
		if at := t.Origin.Add(time.Duration(j.Spec.Submit)); !at.Before(from) && at.Before(until) {
			part.Jobs = append(part.Jobs, j)
		}
	}
	return part
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: %.5f, want %.5f", what, got, want)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Ensure that no importer gains or loses GPU time, by a reader that knows nothing of this one.
func TestGPUTimeIsConserved(t *testing.T) {
	for _, c := range []struct {
		path string
		rule func(get func(string) float64) float64
	}{
		{"philly/philly_pollux_subset.csv.gz", func(get func(string) float64) float64 { return get("gpu_time") }},
		{"muri/trace1.csv.gz", func(
			get func(string) float64) float64 {
			return get("num_gpu") * get("duration") / 1000
		}},
		{"muri/cluster_trace_400.csv",
			func(get func(string) float64) float64 { return get("num_gpu") * get("duration") / 1000 }},
		{"elasticflow/philly_103959.csv",
			func(get func(string) float64) float64 { return get("num_gpu") * get("duration") }},
		{"shockwave/jobs_220.csv",
			func(get func(string) float64) float64 { return get("scale_factor") * get("duration_s") }},
		{"acme/kalos_completed_319.csv",
			func(get func(string) float64) float64 { return get("num_gpus") * get("duration_s") }},
		{"openb/openb_pods_default.csv.gz", func(get func(string) float64) float64 {
			if math.IsNaN(get("scheduled_time")) {
				return 0
			}
			return get("num_gpu") * get("gpu_milli") / 1000 * (get("deletion_time") - get("scheduled_time"))
		}},
	} {
		want, rows := 0.0, csvRows(t, filepath.Join(shareddata.DataDir(t), "traces", c.path))
		for _, row := range rows[1:] {
			want += c.rule(func(name string) float64 {
				for i := range row {
					if rows[0][i] == name {
						x, err := strconv.ParseFloat(row[i], 64)
						if err != nil {
							return math.NaN()
						}
						return x
					}
				}
				return math.NaN()
			})
		}
		s := Describe(public(t, c.path))
		near(t, c.path+": GPU time", float64(s.AskedFor), want, 1e-6*want)
	}
}

// csvRows reads a file with the standard library's reader.
func csvRows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
