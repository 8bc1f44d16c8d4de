package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// press opens the dialog of a button, keeps a picture of it, and does what it says.
func (b *browser) press(button, name string) {
	b.t.Helper()
	b.until(`document.querySelector(` + quoted(button) + `) !== null`)
	value[bool](b, `document.querySelector(`+quoted(button)+`).click(), true`)
	b.until(`document.querySelector("dialog[open]") !== null`)
	b.shot(name)
	b.confirm()
}

// trainer builds what the jobs of examples run.
func trainer(t *testing.T) {
	t.Helper()
	build := exec.Command("go", "build", "-o", filepath.Join("bin", "trainer"), "./examples/trainer")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Ensure that who comes new sees the whole scene: a slot is drained, ten real jobs are submitted, the forecast moves as
// jobs end, a remedy starts a job that waits, a strip says who took the slots and what was lost, losses sum to all slot
// time, and a what-if has the error of its simulation first.
func TestScene(t *testing.T) {
	trainer(t)
	h := serveAs(t, []string{"--set", "*.thresholds=6", "--set", "*.min_run=0"})
	b := open(t, 1280, 900, false)
	b.visit(h.link)
	b.until(`document.querySelectorAll(".yard button").length === 4`)
	value[bool](b, `document.querySelectorAll(".yard button")[3].click(), true`)
	b.press(`#picked [data-verb=drain]`, "scene-drain")
	b.until(`document.querySelector("#picked [data-verb=undrain]") !== null`)
	h.run("submit", filepath.Join(root, "examples", "jobs.yaml"))

	// No job has ended: of when they end nothing is known, and the page says so. Short ones come and take the slots.
	// Once some have ended, the forecast is an interval. The page notes what it showed: jobs do not wait for a test.
	value[bool](b, `(window.shown = [], setInterval(() => shown.push(...[...document.querySelectorAll(
		"#queue td:nth-child(4), #running td:last-child")].map(x => x.textContent)), 100), true)`)
	b.until(`shown.some(x => x === "not known yet")`)
	b.shot("scene-yard-start")
	b.until(`shown.some(x => / to /.test(x))`)
	b.shot("scene-yard-forecast")
	b.goTo("#/time")
	b.until(`document.querySelector(".gantt") !== null`)
	b.shot("scene-time")

	// One wants all four slots, and waits for the one that was drained when all others are done. What would start it is
	// tried on a copy, and one button does it.
	const wide = 5
	over := func(but int) func() bool {
		return func() bool {
			for _, j := range h.jobs() {
				if j.ID != but && j.State != "done" {
					return false
				}
			}
			return true
		}
	}
	h.await("the others are done", over(wide))
	b.goTo(fmt.Sprint("#/job?id=", wide))
	b.until(`[...document.querySelectorAll("#remedies button")].some(x => x.textContent.startsWith("undrain"))`)
	b.shot("scene-remedies")
	value[bool](b, `[...document.querySelectorAll("#remedies button")].find(
		x => x.textContent.startsWith("undrain")).id = "chosen-remedy", true`)
	b.press("#chosen-remedy", "scene-remedy")
	h.await("it is done, too", over(-1))
	if j := h.jobs()[wide]; j.Outcome != "finished" {
		t.Errorf("the job that was started by a remedy: %+v", j)
	}
	h.tookAndLost(b)
	h.lossesSum(b)

	b.goTo("#/whatif")
	b.until(`document.querySelector("#ask") !== null`)
	value[bool](b, `document.querySelector("#ask").click(), true`)
	b.until(`document.querySelector("#run")?.dataset.state === "done"`)
	if !value[bool](b, `(() => { const e = document.querySelector("#error"), t = document.querySelector("#whatif");
		return !!e && !!t && (e.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0 &&
		Number.isFinite(Number(e.querySelector("b").dataset.value)) })()`) {
		t.Error("the error of the simulation does not stand before the systems")
	}
	b.shot("scene-whatif")
	h.own(b)
}

// tookAndLost compares the strip of a job that was preempted with its attempts: who took its slots, and what was lost.
func (h *host) tookAndLost(b *browser) {
	h.t.Helper()
	var doc struct {
		Attempts []struct {
			Number  int
			Outcome string
			By      string  `json:"by_name"`
			Other   *int    `json:"by"`
			Lost    float64 `json:"lost_s"`
		}
	}
	raw := h.got("/v1/jobs/0/attempts")
	if err := json.Unmarshal(raw, &doc); err != nil {
		h.t.Fatal(err)
	}
	b.goTo("#/job?id=0")
	b.until(`document.querySelector("#stops li") !== null`)
	b.shot("scene-strip")
	said := value[[]string](b, `[...document.querySelectorAll("#stops li")].map(x => x.innerText)`)
	stopped := 0
	for _, a := range doc.Attempts {
		if a.Outcome == "preempted" {
			stopped++
		}
	}
	if stopped == 0 || len(said) != stopped {
		h.t.Fatalf("the strip says %q, want one line for each of %d stops: %s", said, stopped, raw)
	}
	for _, text := range said {
		if !strings.Contains(text, "preempted by ") || !strings.Contains(text, "lost, then waited") {
			h.t.Errorf("the strip says %q, want who took the slots and what was lost", text)
		}
	}
}

// lossesSum compares the losses on the page with those of the route, and their sum with all slot time.
func (h *host) lossesSum(b *browser) {
	h.t.Helper()
	b.goTo("#/losses")
	b.until(`document.querySelector("#losses [data-class=all]") !== null`)
	b.shot("scene-losses")
	by := value[map[string]float64](b, `Object.fromEntries([...document.querySelectorAll("#losses [data-class]")].map(
		x => [x.dataset.class, Number(x.dataset.value)]))`)
	sum := 0.0
	for class, hours := range by {
		if class != "all" {
			sum += hours
		}
	}
	if all := by["all"]; all <= 0 || math.Abs(sum-all) > 1e-9*all || by["useful"] <= 0 {
		h.t.Errorf("losses are %v, which sum to %v", by, sum)
	}
}

// Ensure that the report of four months of Philly opens, zooms from all of it to one job, shows the job that lost most
// against fifo and what its wait was, and that its log goes to Perfetto and into a picture.
func TestPhillyScene(t *testing.T) {
	philly := filepath.Join(os.Getenv("TRAINYARD_DATA"), "traces", "philly", "philly_gpu_jobs.csv.gz")
	if _, err := os.Stat(philly); err != nil {
		if os.Getenv("TRAINYARD_REQUIRE_BROWSER") != "" && os.Getenv("TRAINYARD_DATA") != "" {
			t.Fatal(err)
		}
		t.Skipf("no Philly trace in TRAINYARD_DATA: %v", err)
	}
	dir := t.TempDir()
	path, log := filepath.Join(dir, "philly.html"), filepath.Join(dir, "log.jsonl")
	figures := run(t, "simulate", "--trace", philly, "--cluster", "170x8", "--system", "fifo,tiresias-las,srtf",
		"--report", path, "--events-out", log, "--json")
	b := open(t, 1280, 900, false)
	b.show(path)
	b.shot("philly-compare")
	b.goTo("#/time?sys=1")
	b.until(`document.querySelector("canvas.base")?.dataset.level === "heat"`)
	b.shot("philly-months")

	// The job that lost most against fifo is the last of those listed.
	b.goTo("#/compare")
	value[bool](b, `[...document.querySelectorAll(".choices button")].find(
		x => x.textContent === "tiresias-las").click(), true`)
	b.until(`document.querySelector("#gains") !== null && [...document.querySelectorAll("figure h2")].some(
		x => x.textContent.includes("tiresias-las against fifo"))`)
	worst := value[[]string](b, `[...document.querySelector("#gains tbody tr:last-child").cells].map(x => x.innerText)`)
	if !strings.HasPrefix(worst[4], "+") || worst[len(worst)-1] == "–" {
		t.Errorf("the job that lost most is %q, want how much, and its longest wait", worst)
	}
	value[bool](b, `document.querySelector("#gains tbody tr:last-child a").click(), true`)
	b.until(`document.querySelector(".strip") !== null`)
	b.shot("philly-job")
	value[bool](b, `document.querySelector(".scroll a[href*='time']").click(), true`)
	b.until(`["bars", "jobs"].includes(document.querySelector("canvas.base")?.dataset.level)`)
	b.shot("philly-zoomed")
	for _, hash := range []string{"#/jobs?sys=1&q=gpus>16&sort=wait&down=1", "#/losses?sys=1", "#/people"} {
		b.goTo(hash)
		b.shot("philly-" + strings.Trim(strings.Split(hash, "?")[0], "#/"))
	}
	b.closed()
	logs, err := filepath.Glob(filepath.Join(dir, "log*.jsonl"))
	if err != nil || len(logs) != 3 {
		t.Fatalf("logs %v (%v), want one for each system", logs, err)
	}
	for name, args := range map[string][]string{"philly.pftrace": {"export", "perfetto", logs[0]},
		"compare.svg": {"plot", "compare", written(t, "figures.json", string(figures))}} {
		out := filepath.Join(dir, name)
		run(t, append(args, "-o", out)...)
		if info, err := os.Stat(out); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v (%v)", name, info, err)
		}
	}
	b.do(chromedp.Navigate("file://" + filepath.Join(dir, "compare.svg")))
	b.shot("philly-plot")
	if text := value[string](b, `document.documentElement.textContent`); !strings.Contains(text, "tiresias-las") {
		t.Errorf("the picture says %q", fmt.Sprintf("%.300s", text))
	}
}
