package browser

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// written writes a file, and returns its path.
func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that the headline figures are those of --json, that losses sum to all GPU-hours, and that the split of each
// job's time sums to it.
func TestFigures(t *testing.T) {
	path := report(t, testbed...)
	var doc struct {
		Results []struct {
			System                                                                     string
			Finished, Preemptions                                                      float64
			Avg_JCT_s, P50_JCT_s, P95_JCT_s, Avg_Queue_s, Makespan_s, Lost, GPU_Busy_s float64
			GPUHours                                                                   float64 `json:"gpu_hours"`
			LostHours                                                                  float64 `json:"lost_gpu_hours"`
			Busy                                                                       float64 `json:"gpu_busy"`
			Allocated                                                                  float64 `json:"gpu_allocated"`
		}
	}
	if err := json.Unmarshal(run(t, append(testbed, "--json")...), &doc); err != nil {
		t.Fatal(err)
	}
	b := open(t, 1280, 900, false)
	b.show(path)
	rows := value[[][]float64](b, `[...document.querySelectorAll("#headline tbody tr")].map(
		r => [...r.querySelectorAll("[data-value]")].map(x => Number(x.dataset.value)))`)
	if len(rows) != len(doc.Results) {
		t.Fatalf("%d rows, want %d", len(rows), len(doc.Results))
	}
	for i, r := range doc.Results {
		want := []float64{r.Finished, r.Avg_JCT_s, r.P50_JCT_s, r.P95_JCT_s, r.Avg_Queue_s, r.Makespan_s, r.Preemptions,
			r.LostHours, r.Busy}
		for k := range want {
			if rows[i][k] != want[k] {
				t.Errorf("%s: column %d is %v, want %v as in --json", r.System, k, rows[i][k], want[k])
			}
		}
	}
	for i, r := range doc.Results {
		b.goTo("#/losses?sys=" + string(rune('0'+i)))
		by := value[map[string]float64](b, `Object.fromEntries(
			[...document.querySelectorAll("#losses [data-class]")].map(
			x => [x.dataset.class, Number(x.dataset.value)]))`)
		sum := 0.0
		for class, hours := range by {
			if class != "all" {
				sum += hours
			}
		}
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*max(want, 1) {
				t.Errorf("%s: %s %v, want %v", r.System, what, got, want)
			}
		}
		near("sum of losses", sum, by["all"])
		near("held", by["useful"]+by["redone"]+by["coming-up"]+by["stopping"], r.GPUHours)
		near("work", by["useful"]+by["redone"], r.Busy*r.GPUHours/r.Allocated)
	}
	b.closed()
}

// hostile are names that a page must show as they are.
var hostile = []string{`</script><img src=x onerror=hacked=1>`, `<!--<script>hacked=1</script>`,
	`"'` + "`" + `${hacked=1}`,
	`javascript:hacked=1`, "\u202eevil\u202c", "🚂🚃🚃", `=1+2`, `{"a":"<b>"}`, strings.Repeat("long ", 800)}

// Ensure that names of jobs, users and models are text wherever they are shown, that a script that is put into the page
// does not run, and that an anonymous report has none of them.
func TestHostileNames(t *testing.T) {
	var trace strings.Builder
	trace.WriteString("job_id,submit_s,num_gpus,duration_s,user,model\n")
	cell := func(text string) string { return `"` + strings.ReplaceAll(text, `"`, `""`) + `"` }
	for i, name := range hostile {
		trace.WriteString(cell(name) + ",0,1," + string(rune('1'+i)) + "0," + cell(name) + "," + cell(name) + "\n")
	}
	args := []string{"simulate", "--trace", written(t, "hostile.csv", trace.String()), "--cluster", "2x2",
		"--system", "fifo,las"}
	b := open(t, 1280, 900, false)
	b.show(report(t, args...))
	for _, hash := range []string{"#/compare", "#/time?by=user", "#/time?by=model&level=jobs", "#/jobs", "#/job?id=0",
		"#/job?id=8", "#/losses", "#/people", "#/decision", "#/whatif", "#/about"} {
		b.goTo(hash)
	}
	b.goTo("#/jobs")
	names := value[[]string](b, `[...document.querySelectorAll(".body .line a")].map(a => a.textContent)`)
	for i, want := range hostile {
		if want = want[:min(len(want), 200)]; i >= len(names) || names[i] != want {
			t.Errorf("job %d is shown as %q, want %q", i, names[min(i, len(names)-1)], want)
		}
	}
	b.shot("hostile")
	value[bool](b, `(() => { try { const s = document.createElement("script"); s.append("window.hacked = 1");
		document.body.append(s) } catch {} ; return true })()`)
	value[bool](b, `(() => { try { document.body.insertAdjacentHTML("beforeend",
		"<img src=x onerror='window.hacked = 1'>") } catch {} ; return true })()`)
	b.drawn()
	if value[bool](b, `window.hacked !== undefined || document.images.length > 0`) {
		t.Error("a script that was put into the page ran, or an image came to be")
	}
	b.closed()
	nameless, err := os.ReadFile(report(t, append(args, "--anonymous")...))
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, 1280, 900, false)
	again.show(written(t, "anonymous.html", string(nameless)))
	again.goTo("#/jobs")
	if text := value[string](again, `document.querySelector(".body").innerText`); strings.Contains(text, "evil") ||
		!strings.Contains(text, "job 0") || !strings.Contains(text, "user 1") {
		t.Errorf("an anonymous report shows %q", text)
	}
}

// Ensure that a damaged block is an error that names it, above the plain table.
func TestDamaged(t *testing.T) {
	whole, err := os.ReadFile(report(t, "simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4",
		"--system", "fifo"))
	if err != nil {
		t.Fatal(err)
	}
	for block, kept := range map[string]int{"jobs": 50, "system-0": 50, "head": 0} { // characters before the damage
		start := regexp.MustCompile(`id="` + block + `">.{` + strconv.Itoa(kept) + `}`)
		damaged := start.ReplaceAllString(string(whole), "${0}AAAA")
		if len(damaged) != len(whole)+len("AAAA") {
			t.Fatalf("%s: damaged in %d characters, want 4", block, len(damaged)-len(whole))
		}
		b := open(t, 800, 600, false)
		b.show(written(t, "damaged.html", damaged))
		text := value[string](b, `document.querySelector(".warn")?.textContent ?? ""`)
		if !strings.Contains(text, "block "+block) || !value[bool](b, `document.querySelector("table") !== null`) {
			t.Errorf("%s: the page says %q, want it to name the block, and to show the headline table", block, text)
		}
	}
}

// Ensure that named points of a small run have the colours of their bars: whole, zoomed, and on a dense screen.
func TestPixels(t *testing.T) {
	trace := written(t, "small.csv",
		"job_id,submit_s,num_gpus,duration_s,user\na,0,4,100,ann\nb,0,4,50,bob\nc,0,2,20,cid\n")
	path := report(t, "simulate", "--trace", trace, "--cluster", "1x4", "--system", "fifo",
		"--set", "*.restart_overhead=0")
	for _, scale := range []float64{1, 2} {
		b := open(t, 1000, 800, false)
		b.do(chromedp.EmulateViewport(1000, 800, chromedp.EmulateScale(scale)))
		b.show(path)
		for _, view := range []struct {
			hash   string
			t0, t1 float64
		}{{"#/time?by=user&t0=0&t1=170", 0, 170}, {"#/time?by=user&t0=90&t1=160", 90, 160}} {
			b.goTo(view.hash)
			for _, p := range []struct {
				at   float64
				gpu  int
				want string
			}{{95, 0, "#6b87f9"}, {95, 3, "#6b87f9"}, {125, 0, "#c10000"}, {125, 3, "#c10000"}, {155, 0, "#e76406"},
				{155, 1, "#e76406"}, {155, 2, "#ffffff"}, {155, 3, "#ffffff"}} {
				got := value[string](b, `((at, row) => { const c = document.querySelector("canvas.base");
					const y = Math.floor((row + .4) / 4 * c.height);
					const d = c.getContext("2d").getImageData(Math.floor(at * c.width), y, 1, 1).data;
					return "#" + [d[0], d[1], d[2]].map(x => x.toString(16).padStart(2, "0")).join("") })(`+
					number((p.at-view.t0)/(view.t1-view.t0))+`, `+number(float64(p.gpu))+`)`)
				if got != p.want {
					t.Errorf("scale %v, %s: GPU %d at %v s is %s, want %s", scale, view.hash, p.gpu, p.at, got, p.want)
				}
			}
		}
		b.goTo("#/time?by=user&t0=0&t1=170")
		top := value[float64](b, `document.querySelector(".gantt").getBoundingClientRect().top`)
		b.do(chromedp.MouseClickXY(300, top+20))
		b.until(`document.querySelector(".said").textContent.startsWith("Job a,")`)
	}
}

func number(x float64) string {
	text, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Ensure that keys alone lead from screen to screen, to the filter and to a job, and that back and reload return there.
func TestKeys(t *testing.T) {
	b := open(t, 1280, 900, false)
	b.show(report(t, testbed...))
	b.do(chromedp.KeyEvent("3"))
	b.until(`document.querySelector("#shown")?.textContent.startsWith("480 of 480")`)
	if n := value[int](b, `document.querySelectorAll(".body .line").length`); n < 10 || n > 80 {
		t.Errorf("%d rows are built, want those that are seen", n)
	}
	b.do(chromedp.KeyEvent("/"))
	b.until(`document.activeElement?.id === "search"`)
	b.do(chromedp.KeyEvent("gpus>8 model:vgg11"))
	b.until(`document.querySelector("#search").value === "gpus>8 model:vgg11"`)
	b.drawn()
	shown := value[string](b, `document.querySelector("#shown").textContent`)
	b.do(chromedp.KeyEvent(kb.Escape))
	value[bool](b, `document.querySelector(".rows .body").focus(), true`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("h1").textContent.startsWith("Job ")`)
	job := value[string](b, `document.querySelector("h1").textContent`)
	b.do(chromedp.Reload())
	b.until(`document.getElementById("page").dataset.ready === "1"`)
	b.until(`document.querySelector("h1")?.textContent === ` + quoted(job))
	b.do(chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#shown")?.textContent === ` + quoted(shown))
	b.do(chromedp.KeyEvent("2"))
	b.until(`document.querySelector("canvas.base")?.dataset.level !== undefined`)
	value[bool](b, `document.querySelector(".gantt").focus(), true`)
	b.do(chromedp.KeyEvent("]"))
	b.do(chromedp.KeyEvent("]"), chromedp.KeyEvent("+"))
	b.until(`document.querySelector(".said").textContent.startsWith("Job ") && location.hash.includes("t0=")`)
	b.closed()
}
