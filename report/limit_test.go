package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/report/recorded"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that a report beyond its limit keeps the 2,000 jobs that had most GPU time or waited for most of it, under
// their names, with all of their attempts; that sums are of all; and that heat adds up to all work.
func TestLimit(t *testing.T) {
	r := large(t, 3000)
	s := &r.Systems[0]
	r.Limit = 1 << 40
	var file bytes.Buffer
	if left, err := r.Write(&file); left != "" || err != nil {
		t.Fatalf("within its limit: %q, %v", left, err)
	}
	r.Limit = 10000
	file.Reset()
	left, err := r.Write(&file)
	if err != nil || !strings.Contains(left, "2000 of 3000 jobs") {
		t.Fatalf("left out: %q, %v", left, err)
	}
	ids := decoded(t, file.String(), "jobs")["kept"]["id"]
	system := decoded(t, file.String(), "system-0")
	if len(ids) != 2000 || !slices.IsSorted(ids) {
		t.Fatalf("%d jobs are kept", len(ids))
	}
	worth := func(i int) float64 {
		j := &s.Jobs[i]
		return max(float64(j.Service), j.Queue().Seconds()*float64(j.GPUs))
	}
	least, most := math.Inf(1), 0.0
	for i := range s.Jobs {
		if slices.Contains(ids, int64(i)) {
			least = min(least, worth(i))
		} else {
			most = max(most, worth(i))
		}
	}
	if least < most {
		t.Errorf("a job worth %v is kept, one worth %v is not", least, most)
	}
	want := []string{}
	for _, a := range s.Timeline.Attempts {
		if n, ok := slices.BinarySearch(ids, int64(a.Job)); ok {
			want = append(want, fmt.Sprint(n, a.Number))
		}
	}
	got := []string{}
	for i, j := range system["attempts"]["job"] {
		got = append(got, fmt.Sprint(j, system["attempts"]["number"][i]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d attempts are kept, want the %d of the jobs that are", len(got), len(want))
	}
	var head struct {
		Systems []struct {
			Result struct{ Finished int }
			Sums   struct {
				Users []struct {
					Jobs  int
					Hours float64 `json:"gpu_hours"`
				}
			}
		}
	}
	text := file.String()[strings.Index(file.String(), `id="head">`)+10:]
	text, _, _ = strings.Cut(text, "</script>")
	if bad := json.Unmarshal([]byte(text), &head); bad != nil {
		t.Fatal(bad)
	}
	jobs, hours := 0, 0.0
	for _, u := range head.Systems[0].Sums.Users {
		jobs, hours = jobs+u.Jobs, hours+u.Hours
	}
	if jobs != 3000 || math.Abs(hours-s.Result.GPUHours) > 1e-6*hours {
		t.Errorf("users have %d jobs and %v GPU-hours, want 3000 and %v", jobs, hours, s.Result.GPUHours)
	}
	heat, axis := 0.0, system["heat-axis"]
	for _, x := range system["heat"]["share"] {
		heat += float64(x) / 255
	}
	heat *= 8 * float64(axis["width_us"][0]) / 3.6e9
	l := s.Timeline.Losses()
	if work := l.By[timeline.Useful].Hours() + l.By[timeline.Redone].Hours(); math.Abs(heat-work) > .01*work {
		t.Errorf("heat adds up to %v GPU-hours, want %v", heat, work)
	}
	again := bytes.Buffer{}
	if _, err = r.Write(&again); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Errorf("written again it has other bytes, or fails: %v", err)
	}
}

// Ensure that what is odd about a run makes a page that says what it has: no job, one job, no job finished, all at
// once, very many GPUs of one node, times of ten years and of microseconds.
func TestOdd(t *testing.T) {
	job := func(name string, gpus int, at, length time.Duration) trace.Job {
		s := sched.JobSpec{Name: name, GPUs: sched.Rigid(gpus), Submit: sched.Time(at)}
		return trace.Job{Spec: s, Duration: length}
	}
	many := []trace.Job{}
	for i := range 200 {
		many = append(many, job(fmt.Sprint(i), 1+i%4, 0, time.Minute))
	}
	for name, c := range map[string]struct {
		jobs    []trace.Job
		cluster string
	}{
		"one":     {[]trace.Job{job("a", 1, 0, time.Hour)}, "1x1"},
		"at once": {many, "2x4"},
		"wide":    {[]trace.Job{job("a", 9999, 0, time.Hour), job("b", 1, 0, time.Hour)}, "1x10000"},
		"decade":  {[]trace.Job{job("a", 1, 0, 87600*time.Hour), job("b", 1, 1, time.Second)}, "1x2"},
		"micro": {[]trace.Job{job("a", 1, 3*time.Microsecond, 7*time.Microsecond),
			job("b", 1, 5*time.Microsecond, time.Microsecond)}, "1x1"},
	} {
		line := new(timeline.Timeline)
		spec, err := cluster.Load(c.cluster)
		if err != nil {
			t.Fatal(err)
		}
		q := simulate.Request{Trace: &trace.Trace{Jobs: c.jobs}, Cluster: spec, System: "fifo", Timeline: line}
		out, err := q.Run(t.Context())
		if err != nil {
			t.Fatal(name, err)
		}
		s := report.System{Name: "fifo", Result: out.Result, Jobs: out.PerJob, Timeline: line}
		r := &report.Report{Systems: []report.System{s}}
		file := written(t, r)
		if n := len(decoded(t, file, "system-0")["attempts"][""]); n != len(c.jobs) {
			t.Errorf("%s: %d attempts, want %d", name, n, len(c.jobs))
		}
		if r.Limit = 1; name == "wide" {
			if _, err := r.Write(new(bytes.Buffer)); err != nil {
				t.Error(err)
			}
		}
	}
}

// Ensure that of a log that is cut or damaged the run is read up to there, and that why is said; and that one of which
// nothing can be read is an error.
func TestRecordedInPart(t *testing.T) {
	var log bytes.Buffer
	q := simulate.Request{System: "fifo", From: simulate.Inputs{Trace: inputs + "mixed.csv",
		Cluster: inputs + "failing.yaml"}}
	writer := (*eventlog.Writer)(nil)
	q.Log = func(h eventlog.Header) eventlog.Sink { writer = eventlog.NewWriter(&log, h); return writer }
	if _, err := q.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(log.String(), "\n")
	half := strings.Join(lines[:len(lines)/2], "")
	head := lines[0]
	for name, c := range map[string]struct{ log, short, err string }{
		"whole":        {log: log.String()},
		"cut":          {log: half + `{"seq":`, short: fmt.Sprintf("line %d: cut short", len(lines)/2+1)},
		"damaged":      {log: half + "{}\n" + lines[len(lines)/2], short: fmt.Sprintf("line %d", len(lines)/2+1)},
		"another":      {log: half + head + lines[1], short: "does not follow"},
		"header alone": {log: head},
		"empty":        {err: "nothing there"},
		"damaged soon": {log: head + "{}\n", err: "line 2"},
	} {
		r, err := eventlog.NewReader(strings.NewReader(c.log), "log")
		var s report.System
		var short error
		if err == nil {
			s, short, err = recorded.Run(r)
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil || (short == nil) != (c.short == "") || !strings.Contains(fmt.Sprint(short), c.short) {
			t.Errorf("%s: ends early for %v, want %q (%v)", name, short, c.short, err)
			continue
		}
		file := written(t, &report.Report{Systems: []report.System{s}})
		if jobs := len(decoded(t, file, "jobs")["jobs"][""]); (jobs == 0) != (name == "header alone") {
			t.Errorf("%s: %d jobs", name, jobs)
		}
	}
}

// Ensure that documents become tables: a row for each object of a list, with the words of what it is in.
func TestFigures(t *testing.T) {
	doc := json.RawMessage(`{"schema":"x","experiment":"e","seeds":2,"published":{"b":1,"a":null},"parts":[
		{"history":"none","rows":[{"system":"x","jct":{"mean":1.5,"low":1},"list":[1,2]},{"system":"y","late":true}]},
		{"history":"some","rows":[{"system":"z","jct":{"mean":3}}]}]}`)
	tables, err := report.Figures(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{all [seeds published.b published.a] [[2 1 <nil>]]} {parts [history] [[none] [some]]} ` +
		`{rows [history system jct.mean jct.low list late] ` +
		`[[none x 1.5 1 1, 2 <nil>] [none y <nil> <nil> <nil> true] ` +
		`[some z 3 <nil> <nil> <nil>]]}]`
	if got := fmt.Sprint(tables); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
