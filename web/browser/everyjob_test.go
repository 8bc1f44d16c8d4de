package browser

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// table reads CSV, row by row, by names of columns.
func table(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	list, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(list) < 2 {
		t.Fatalf("%d rows: %v", len(list), err)
	}
	for _, row := range list[1:] {
		named := map[string]string{}
		for i, name := range list[0] {
			named[name] = row[i]
		}
		rows = append(rows, named)
	}
	return rows
}

// figure reads a figure of a table; NaN = there is none.
func figure(text string) float64 {
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return x
	}
	return math.NaN()
}

// Ensure that each job has on the page, and in the table that is saved from there, the figures of --jobs-out, and each
// user the sums of those.
func TestEveryJob(t *testing.T) {
	out := filepath.Join(t.TempDir(), "jobs.csv")
	path := report(t, "simulate", "--trace", freeze+"mixed.csv", "--cluster", "6x4", "--system", "las", "--jobs-out",
		out)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want := table(t, string(text))
	b := open(t, 1280, 900, false)
	b.before(`URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text }); return "data:," }`)
	b.show(path)
	b.goTo("#/jobs")
	value[bool](b, `[...document.querySelectorAll(".bar button")].find(
		x => x.textContent === "save as CSV").click(), true`)
	b.until(`window.saved !== undefined`)
	got := table(t, value[string](b, "window.saved"))
	if len(got) != len(want) {
		t.Fatalf("%d jobs are saved, want %d", len(got), len(want))
	}
	type sum struct{ jobs, finished, hours, wait, preempted float64 }
	sums := map[string]*sum{}
	for i, w := range want {
		g := got[i]
		for here, there := range map[string]string{"gpus": "gpus", "submit_s": "submit_s", "wait_s": "queue_s",
			"run_s": "run_s", "jct_s": "jct_s", "preemptions": "preemptions"} {
			x, y := figure(g[here]), figure(w[there])
			if w["status"] == "finished" && !(math.Abs(x-y) <= 1e-3) { // NaN is wrong, too
				t.Errorf("%s: %s is %v, want %v as in --jobs-out", w["job_id"], here, x, y)
			}
		}
		if g["job"] != w["job_id"] || g["state"] != w["status"] {
			t.Errorf("%s is %s, want %s, %s", g["job"], g["state"], w["job_id"], w["status"])
		}
		s := sums[g["user"]]
		if s == nil {
			s = new(sum)
			sums[g["user"]] = s
		}
		s.jobs++
		s.hours += figure(w["gpu_seconds"]) / 3600
		s.preempted += figure(w["preemptions"])
		if w["status"] == "finished" {
			s.finished++
			s.wait += figure(w["queue_s"])
		}
	}
	b.goTo("#/people")
	rows := value[map[string][]float64](b, `Object.fromEntries([...document.querySelectorAll("#people tbody tr")].map(
		r => [r.querySelector("th").textContent.replace("–", ""),
		[...r.querySelectorAll("[data-value]")].map(x => Number(x.dataset.value))]))`)
	if len(rows) != len(sums) || len(rows) < 2 {
		t.Fatalf("users %v, want %d", rows, len(sums))
	}
	for user, s := range sums {
		for k, want := range []float64{s.jobs, s.finished, s.hours, s.wait / s.finished, s.preempted} {
			if x := rows[user][k]; math.Abs(x-want) > 1e-6*max(want, 1) {
				t.Errorf("column %d of %s is %v, want %v: the sum over jobs", k, user, x, want)
			}
		}
	}
	b.shot("people-users")
	b.closed()
}
