package trace

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/shareddata"
	"github.com/trainyard/trainyard/sched"
)

// published are the real files, with counts, mean demands and quantiles computed independently of this package when
// the files were converted. A value of 0 is not known.
var published = []struct {
	path, format  string
	jobs          int
	demand        float64 // GPUs
	p50, p95, p99 int64   // seconds
	warnings      int
}{
	{"traces/philly/philly_gpu_jobs.csv.gz", "philly", 111549, 1167, 1321, 123923, 755541, 0},
	{"traces/venus/venus_gpu_jobs.csv.gz", "venus", 125303, 521, 204, 58054, 172800, 1},
	{"traces/venus/venus_half_seed42.csv.gz", "pai", 62735, 0, 0, 0, 0, 0},
	{"traces/pai/pai_terminated_tasks_sample.csv.gz", "pai", 60105, 450, 618, 22752, 66192, 0},
	{"traces/philly_vc/7f04ca_oct_nov.csv", "trainyard", 1098, 0, 0, 0, 0, 0},
	{"traces/philly_vc/2869ce_oct_nov.csv", "trainyard", 747, 0, 0, 0, 0, 0},
	{"traces/tiresias/60_job.csv", "tiresias", 60, 15, 125, 0, 1800, 0},
	{"tiresias/syn480_s1.csv", "tiresias", 480, 134, 0, 0, 0, 0},
	{"tiresias/syn480_s2.csv", "tiresias", 480, 93, 0, 0, 0, 0},
	{"pal/traces/workload-1.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-2.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-3.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-4.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-5.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-6.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-7.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/workload-8.csv", "pal", 160, 0, 0, 0, 0, 0},
	{"pal/traces/sia-160job-trace.csv", "pal", 160, 0, 0, 0, 0, 0},
}

func TestPublishedFiles(t *testing.T) {
	dir := shareddata.DataDir(t)
	for _, c := range published {
		t.Run(c.path, func(t *testing.T) {
			got, err := Read(filepath.Join(dir, c.path), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Format != c.format || len(got.Jobs) != c.jobs || len(got.Warnings) != c.warnings {
				t.Errorf("format %s, %d jobs, warnings %q, want %s, %d, %d", got.Format, len(got.Jobs), got.Warnings,
					c.format, c.jobs, c.warnings)
			}
			s := Describe(got)
			if c.demand > 0 && math.Round(s.MeanDemand()) != c.demand {
				t.Errorf("mean demand %.1f GPUs, want %.0f", s.MeanDemand(), c.demand)
			}
			check := func(name string, got time.Duration, want int64) {
				// the published ones are interpolated between two jobs
				if want > 0 && math.Abs(got.Seconds()/float64(want)-1) > .002 {
					t.Errorf("%s %v, want %d s", name, got, want)
				}
			}
			check("median", s.Duration.P50, c.p50)
			check("95th percentile", s.Duration.P95, c.p95)
			check("99th percentile", s.Duration.P99, c.p99)
			sameAsTwin(t, filepath.Join(dir, c.path), got)
			roundTrip(t, got)
		})
	}
}

// TestPhillyWidths compares with the shares of jobs and of GPU time that were published with the file.
func TestPhillyWidths(t *testing.T) {
	got, err := Read(filepath.Join(shareddata.DataDir(t), "traces/philly/philly_gpu_jobs.csv.gz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := Describe(got)
	want := map[int][2]float64{1: {.867, .180}, 2: {.023, .026}, 4: {.049, .172}, 8: {.051, .487}, 16: {.0076, .102},
		32: {.0019, .023}}
	for _, w := range s.Widths {
		if share, ok := want[w.GPUs]; ok &&
			(math.Abs(w.JobShare-share[0]) > .0006 || math.Abs(w.TimeShare-share[1]) > .0006) {
			t.Errorf("%d GPUs: %.4f of jobs, %.4f of GPU time, want %v", w.GPUs, w.JobShare, w.TimeShare, share)
		}
	}
	if len(s.Groups) != 16 || s.Groups[0].Jobs != 42020 || s.Groups[0].Name != "6214e9" {
		t.Errorf("%d groups, first %v, want 15 virtual clusters and the unknown, first 6214e9 with 42020 jobs",
			len(s.Groups), s.Groups[0])
	}
}

// Ensure that the Sia-Philly workloads of PAL hold what was found independently: of their GPU time 84 to 99 % in jobs
// of more than 4 GPUs, 1 to 16 % in those of 2 to 4, and 45 to 97 % in class A.
//
// Reference: specification of PAL, 5.3.
func TestPALWorkloads(t *testing.T) {
	dir := shareddata.DataDir(t)
	for i := 1; i <= 8; i++ {
		got, err := Read(filepath.Join(dir, "pal", "traces", "workload-"+strconv.Itoa(i)+".csv"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var all, wide, matrix, sensitive float64
		for k := range got.Jobs {
			j := &got.Jobs[k]
			n := int(j.Spec.GPUs.Want)
			x := float64(n) * j.Duration.Seconds()
			all += x
			if n > 4 {
				wide += x
			} else if n > 1 {
				matrix += x
			}
			if j.Spec.Class == "A" {
				sensitive += x
			}
		}
		t.Logf("workload %d: %.0f GPU hours, %.3f in jobs above 4 GPUs, %.3f in 2-4, %.3f in class A", i, all/3600,
			wide/all, matrix/all, sensitive/all)
		for _, c := range []struct{ got, low, high float64 }{{wide / all, .835, .995}, {matrix / all, .005, .165},
			{sensitive / all, .445, .975}} {
			if c.got < c.low || c.got > c.high {
				t.Errorf("workload %d: a share of %.4f, want %.3f..%.3f", i, c.got, c.low, c.high)
			}
		}
	}
}

// sameAsTwin reads the file once more, with the standard library's CSV reader and floating-point numbers.
func sameAsTwin(t *testing.T, path string, got *Trace) {
	t.Helper()
	rows := csvRows(t, path)
	at := make(map[string]int)
	for i, name := range rows[0] {
		at[name] = i
	}
	value := func(row []string, names ...string) string {
		for _, name := range names {
			if i, ok := at[name]; ok {
				return row[i]
			}
		}
		t.Fatalf("no column %q", names)
		return ""
	}
	for i, row := range rows[1:] {
		j := &got.Jobs[i]
		submit, _ := strconv.ParseFloat(value(row, "submit_s", "arrival_s", "submit_time"), 64)
		duration, _ := strconv.ParseFloat(value(row, "duration_s", "service_sec", "duration"), 64)
		if got.Format == "pal" {
			for _, it := range palIteration {
				if it.model == value(row, "model") {
					duration *= it.sec
				}
			}
		}
		n, _ := strconv.Atoi(value(row, "num_gpus", "gpu_count", "num_gpu"))
		if j.Spec.Name != row[0] || j.Spec.GPUs != sched.Rigid(n) ||
			j.Spec.Submit != sched.Time(sched.Seconds(submit)) || j.Duration != sched.Seconds(duration) {
			t.Fatalf("row %d: %+v, want %q", i, *j, row)
		}
	}
}
