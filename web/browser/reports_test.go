package browser

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const freeze = "internal/freeze/testdata/input/"

// everywhere takes screenshots of a place, light, dark and narrow, and fails if it is wider than its window.
func everywhere(t *testing.T, path, hash, name string) {
	t.Helper()
	for _, size := range []struct {
		name          string
		width, height int64
		dark          bool
	}{{"light", 1280, 900, false}, {"dark", 1280, 900, true}, {"narrow", 360, 740, false}} {
		b := open(t, size.width, size.height, size.dark)
		b.show(path)
		b.goTo(hash)
		b.shot(name + "-" + size.name)
		if size.width > 360 {
			b.accessible(name + "-" + size.name)
		}
		if wide := value[float64](b, "document.documentElement.scrollWidth"); wide > float64(size.width) {
			t.Errorf("%s is %v pixels wide, want at most the window's %d", name, wide, size.width)
		}
		b.closed()
	}
}

// figuresOf returns the figures of a page by name.
func figuresOf(b *browser, in string) map[string]float64 {
	b.t.Helper()
	return value[map[string]float64](b, `Object.fromEntries([...document.querySelectorAll(`+quoted(in+" [data-figure]")+
		`)].map(x => [x.dataset.figure, Number(x.dataset.value)]))`)
}

// Ensure that the frontier of a plan has the figures of --json, and says the slope in words.
func TestFrontier(t *testing.T) {
	args := []string{"plan", "--workload", freeze + "classes.yaml", "--budget", "48"}
	path := report(t, args...)
	var doc struct {
		Budget   float64
		JCT      float64 `json:"avg_jct_h"`
		Weighted float64 `json:"avg_weighted_jct_h"`
		Usage    float64 `json:"usage_gpus"`
		Widths   []struct {
			Class string
			GPUs  float64
		}
		Frontier []struct {
			Budget float64
			JCT    float64 `json:"avg_jct_h"`
		}
	}
	if err := json.Unmarshal(run(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	everywhere(t, path, "#/frontier", "frontier")
	b := open(t, 1280, 900, false)
	b.show(path)
	want := map[string]float64{"budget": doc.Budget, "jct": doc.JCT, "weighted": doc.Weighted, "usage": doc.Usage}
	for name, got := range figuresOf(b, "main") {
		if got != want[name] {
			t.Errorf("%s is %v, want %v as in --json", name, got, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("the page lacks %v", want)
	}
	widths := value[[]float64](b, `[...document.querySelectorAll("#widths [data-value]")].map(x => +x.dataset.value)`)
	if len(widths) != len(doc.Widths) {
		t.Fatalf("%d widths, want %d", len(widths), len(doc.Widths))
	}
	for i, w := range doc.Widths {
		if widths[i] != w.GPUs {
			t.Errorf("row %d of %s has %v GPUs, want %v", i, w.Class, widths[i], w.GPUs)
		}
	}
	rows := value[int](b, `document.querySelectorAll("figure details table tbody tr").length`)
	if rows != len(doc.Frontier) {
		t.Errorf("the chart has %d budgets, want %d", rows, len(doc.Frontier))
	}
	if text := value[string](b, `document.querySelector("figcaption p").textContent`); !strings.Contains(text,
		"one more GPU saves 1m24s a job") {
		t.Errorf("the slope is said as %q", text)
	}
	if screens := value[string](b, `document.querySelector("nav").innerText`); strings.Contains(screens, "Jobs") {
		t.Errorf("a plan has the screens %q, want none about jobs", screens)
	}
}

// Ensure that energy and money are those of --json, that their parts sum to them, and that a run without them says so.
func TestEnergy(t *testing.T) {
	args := []string{"simulate", "--trace", freeze + "mixed.csv", "--cluster", freeze + "energy.yaml", "--system",
		"fifo,las", "--energy-price", freeze + "price.csv", "--carbon", freeze + "carbon.csv"}
	path := report(t, args...)
	var doc struct{ Results []map[string]any }
	if err := json.Unmarshal(run(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	everywhere(t, path, "#/energy", "energy")
	b := open(t, 1280, 900, false)
	b.show(path)
	b.goTo("#/energy")
	for i, want := range doc.Results {
		got := figuresOf(b, "#energy tbody tr:nth-child("+string(rune('1'+i))+")")
		for _, name := range []string{"energy_kwh", "energy_busy_kwh", "energy_idle_kwh", "energy_sleep_kwh",
			"energy_cost", "cost", "carbon_g"} {
			if x, _ := want[name].(float64); got[name] != x {
				t.Errorf("%v: %s is %v, want %v as in --json", want["system"], name, got[name], x)
			}
		}
		sum := got["energy_busy_kwh"] + got["energy_idle_kwh"] + got["energy_sleep_kwh"]
		if all := got["energy_kwh"]; all <= 0 || math.Abs(sum-all) > 1e-9*all {
			t.Errorf("%v: jobs, idle and sleep sum to %v kWh, want %v", want["system"], sum, all)
		}
	}
	jobs := value[[]float64](b, `[...document.querySelectorAll("#dearest [data-value]")].map(x => +x.dataset.value)`)
	if len(jobs) != 20 {
		t.Errorf("%d dearest jobs, want 20", len(jobs))
	}
	for i := 1; i < len(jobs); i++ {
		if jobs[i] > jobs[i-1] {
			t.Errorf("job %d is dearer than the one before", i)
		}
	}
	b.goTo("#/time")
	money := value[string](b, `document.querySelector("#money figcaption").innerText`)
	for _, name := range []string{"cost", "energy_cost"} {
		x, _ := doc.Results[0][name].(float64)
		if text := strconv.FormatFloat(x, 'g', 5, 64); x <= 0 || !strings.Contains(money, text) {
			t.Errorf("dollars over time say %q, want %s %s", money, name, text)
		}
	}
	b.shot("time-money")
	b.show(report(t, "simulate", "--trace", freeze+"mixed.csv", "--cluster", "6x4", "--system", "fifo"))
	b.goTo("#/time")
	unpriced := value[string](b, `document.querySelector("main").innerText`)
	if !strings.Contains(unpriced, "Prices are not known") {
		t.Errorf("a run without prices says %q", unpriced)
	}
	b.goTo("#/energy")
	for _, want := range []string{"Power is not measured here", "No prices are stated", "carbon of a kWh is not"} {
		if text := value[string](b, `document.querySelector("main").innerText`); !strings.Contains(text, want) {
			t.Errorf("a run without power says %q, want %q", text, want)
		}
	}
	if n := len(figuresOf(b, "main")); n > 0 {
		t.Errorf("a run without power shows %d figures, want none", n)
	}
	b.closed()
}

// Ensure that the report of an experiment has all figures of --json, and what is printed for people.
func TestExperiment(t *testing.T) {
	args := []string{"experiment", "unsaved", "--seeds", "1", "--data", ""}
	path := report(t, args...)
	var doc struct {
		Rows []struct {
			System string
			Never  float64 `json:"never_save"`
			JCT    struct{ Mean float64 }
			AvgJCT struct{ Mean float64 } `json:"avg_jct_h"`
		}
	}
	if err := json.Unmarshal(run(t, append(args, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	everywhere(t, path, "#/figures", "figures")
	b := open(t, 1280, 900, false)
	b.show(path)
	got := value[[]float64](b, `[...document.querySelectorAll("[data-column='avg_jct_h.mean']")].map(
		x => +x.dataset.value)`)
	if len(got) != len(doc.Rows) {
		t.Fatalf("%d figures, want %d", len(got), len(doc.Rows))
	}
	for i, r := range doc.Rows {
		if got[i] != r.AvgJCT.Mean {
			t.Errorf("%s: mean JCT %v, want %v", r.System, got[i], r.AvgJCT.Mean)
		}
	}
	text := value[string](b, `document.querySelector(".printed").textContent`)
	if !strings.Contains(text, "tiresias-las") {
		t.Errorf("what is printed is %.200q", text)
	}
}

// Ensure that a report beyond its limit keeps 2,000 jobs, that its figures are those of all, and that page and stderr
// say what is left out.
func TestLimit(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(trace, run(t, "trace", "generate", "--like", "philly", "--jobs", "6000", "--load", "0.9",
		"--cluster", "40x8"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"simulate", "--trace", trace, "--cluster", "40x8", "--system", "fifo-skip,las"}
	path := filepath.Join(t.TempDir(), "report.html")
	cmd := exec.Command(trainyard(t), append(args, "--report", path, "--report-limit", "0.1")...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "attempts of 2000 of ") {
		t.Fatalf("%v: %s", err, out)
	}
	b := open(t, 1280, 900, false)
	b.show(path)
	if text := value[string](b, `document.querySelector("#kept").textContent`); !strings.Contains(text, "2000 of") {
		t.Errorf("the page says %q", text)
	}
	b.shot("limit-compare")
	whole := open(t, 1280, 900, false)
	whole.show(report(t, args...))
	const medians = `[...document.querySelectorAll("figure details table tbody tr")].slice(0, 2).map(
		r => r.innerText).join()`
	if got, want := value[string](b, medians), value[string](whole, medians); got != want {
		t.Errorf("quantiles are %q, want those of all jobs: %q", got, want)
	}
	for _, hash := range []string{"#/people", "#/losses"} {
		b.goTo(hash)
		whole.goTo(hash)
		const text = `document.querySelector("main table").innerText`
		if got, want := value[string](b, text), value[string](whole, text); got != want {
			t.Errorf("%s has %q, want that of all jobs: %q", hash, got, want)
		}
	}
	// Heat is the same picture, as far as its steps allow.
	shade := `(() => { const c = document.querySelector("canvas.base"), d = c.getContext("2d").getImageData(0, 0,
		c.width, c.height).data; let sum = 0;
		for (let i = 0; i < d.length; i += 4) sum += d[i]; return sum / (d.length / 4) })()`
	b.goTo("#/time?level=heat&sys=1")
	whole.goTo("#/time?level=heat&sys=1")
	b.shot("limit-heat")
	whole.shot("limit-heat-whole")
	if got, want := value[float64](b, shade), value[float64](whole, shade); math.Abs(got-want) > 2 {
		t.Errorf("the mean shade of heat is %v, want about %v", got, want)
	}
	b.goTo("#/jobs")
	b.until(`document.querySelector("#shown").textContent.startsWith("2")`)
	b.closed()
}

// Ensure that a browser that runs no scripts, and one that cannot unpack, show a sentence that says so, and the
// headline figures.
func TestPlain(t *testing.T) {
	path := report(t, "simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4", "--system", "fifo")
	says := func(b *browser, how string) {
		text := value[string](b, `document.querySelector("main.plain").innerText`)
		if !strings.Contains(text, "needs scripts, and a browser of 2023 or later") || !strings.Contains(text, "fifo") {
			t.Errorf("%s: %q", how, text)
		}
	}
	b := open(t, 800, 600, false)
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
	b.do(chromedp.Navigate("file://" + path))
	says(b, "scripts")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = open(t, 800, 600, false)
	b.before("delete window.DecompressionStream")
	b.do(chromedp.Navigate("file://" + written(t, "old.html", string(old))))
	b.until(`document.querySelector("main.plain") !== null`)
	says(b, "old")
	b.shot("plain")
	b.closed()
}
