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

// timeTexts checks what the Time screen says of GPUs held and of the queue against jobs, all of which finished: the GPU
// time and the waits of all, spread over the run.
func timeTexts(t *testing.T, b *browser, jobs []map[string]string) {
	t.Helper()
	first, last, held, waited := math.Inf(1), 0.0, 0.0, 0.0
	for _, j := range jobs {
		if j["status"] != "finished" {
			t.Fatalf("%s is %s, the test wants jobs that finished", j["job_id"], j["status"])
		}
		first, last = min(first, figure(j["submit_s"])), max(last, figure(j["finish_s"]))
		held, waited = held+figure(j["gpu_seconds"]), waited+figure(j["queue_s"])
	}
	b.goTo("#/time")
	says := value[[]string](b, `[...document.querySelectorAll("figcaption p")].map(x => x.textContent)`)
	digits := func(x float64) string {
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	for _, want := range []string{digits(held/(last-first)) + " of 24 GPUs on average",
		digits(waited/(last-first)) + " jobs waited on average"} {
		if !strings.Contains(strings.Join(says, "\n"), want) {
			t.Errorf("the screen says %q, want %q as of --jobs-out", says, want)
		}
	}
}

// jobFacts checks the facts of screens of single jobs against --jobs-out.
func jobFacts(t *testing.T, b *browser, jobs []map[string]string) {
	t.Helper()
	for id := 0; id < len(jobs); id += 9 {
		want := jobs[id]
		b.goTo("#/job?id=" + strconv.Itoa(id))
		b.until(`document.querySelector("h1").textContent === "Job " + ` + quoted(want["job_id"]))
		got := value[map[string]float64](b, `Object.fromEntries([...document.querySelectorAll("main [data-fact]")].map(
			x => [x.dataset.fact, Number(x.dataset.value)]))`)
		for fact, column := range map[string]string{"submit": "submit_s", "gpus": "gpus", "jct": "jct_s",
			"wait": "queue_s", "gpu_hours": "gpu_seconds", "preemptions": "preemptions"} {
			w := figure(want[column])
			if fact == "gpu_hours" {
				w /= 3600
			}
			if x, there := got[fact]; !there || math.Abs(x-w) > 1e-3 {
				t.Errorf("job %s: %s is %v, want %v as in --jobs-out", want["job_id"], fact, x, w)
			}
		}
	}
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
	timeTexts(t, b, want)
	jobFacts(t, b, want)
	b.closed()
}
