package browser

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// Ensure that systems are compared as the figures say: intervals are those of --json, and the table by GPUs and run
// time is what the test computes of --jobs-out. Two systems stand side by side on one time axis, with the same job
// selected.
func TestCompare(t *testing.T) {
	out := filepath.Join(t.TempDir(), "jobs.csv")
	args := []string{"simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4", "--system", "fifo,las,srtf"}
	path := report(t, append(args, "--jobs-out", out)...)
	b := open(t, 1280, 900, false)
	b.show(path)
	comparedCells(t, b, out)
	comparedIntervals(t, b, run(t, append(args, "--json")...))
	b.accessible("compare")

	// Both charts follow keys in one of them, and a click selects the job in both.
	b.until(`document.querySelectorAll(".two canvas.base[data-level]").length === 2`)
	axes := `[...document.querySelectorAll(".two .gantt")].length === 2 && location.hash.includes("t0=")`
	value[bool](b, `document.querySelector(".two .gantt").focus(), true`)
	for range 2 {
		b.do(chromedp.KeyEvent("+"))
	}
	b.until(axes)
	b.do(chromedp.KeyEvent("]"))
	b.until(`location.hash.includes("pick=")`)
	first := value[string](b, `document.querySelector(".two").closest("figure").querySelector(".bar a").textContent`)
	value[bool](b, `document.querySelectorAll(".two .gantt")[1].focus(), true`)
	b.do(chromedp.KeyEvent("]"))
	b.until(`location.hash.includes("on=1")`)
	second := value[string](b, `document.querySelector(".two").closest("figure").querySelector(".bar a").textContent`)
	if first == "" || second == "" {
		t.Errorf("selected %q, then %q, want jobs", first, second)
	}
	b.shot("compare-two")
	hash := value[string](b, "location.hash")
	b.do(chromedp.Reload())
	b.until(`document.querySelectorAll(".two canvas.base[data-level]").length === 2`)
	if again := value[string](b, "location.hash"); again != hash {
		t.Errorf("reload leads to %s, want %s", again, hash)
	}
	value[bool](b, `[...document.querySelectorAll("button")].find(x => x.textContent === "las").click(), true`)
	b.until(`[...document.querySelectorAll(".two h3")].map(x => x.textContent).join().includes("las")`)
	b.closed()

	// Of a simulator that knows no GPUs there is no chart, and the page says so.
	b.show(report(t, "simulate", "--trace", "examples/testbed.csv", "--cluster", "15x4", "--system",
		"fifo,tiresias-las", "--preset", "tiresias"))
	if n := value[int](b, `document.querySelectorAll(".two").length`); n != 0 {
		t.Errorf("%d charts of a simulator without GPUs", n)
	}
	b.until(`document.querySelector("main").innerText.includes("none are recorded")`)
	b.closed()
}

// comparedCells checks the table by GPUs and run time against jobs of --jobs-out.
func comparedCells(t *testing.T, b *browser, out string) {
	t.Helper()
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	type job struct{ gpus, run float64 }
	systems, first, jct := []string{}, map[string]job{}, map[string]map[string]float64{}
	for _, row := range table(t, string(text)) {
		s := row["system"]
		if jct[s] == nil {
			systems, jct[s] = append(systems, s), map[string]float64{}
		}
		if row["status"] != "finished" {
			continue
		}
		if jct[s][row["job_id"]] = figure(row["jct_s"]); len(systems) == 1 {
			first[row["job_id"]] = job{figure(row["gpus"]), figure(row["run_s"])}
		}
	}
	runs := []float64{}
	for id, j := range first {
		for _, s := range systems {
			if _, done := jct[s][id]; !done {
				t.Fatalf("%s did not finish under %s: the test wants jobs that did", id, s)
			}
		}
		runs = append(runs, j.run)
	}
	slices.Sort(runs)
	n, want := len(runs), map[string][]float64{} // by cell: jobs, then the sum of JCTs by system
	for id, j := range first {
		quartile := 1
		for q := 1; q < 4 && j.run > runs[(q*n+3)/4-1]; q++ {
			quartile++
		}
		name := fmt.Sprint(widest(int(j.gpus)), "/", quartile)
		if want[name] == nil {
			want[name] = make([]float64, 1+len(systems))
		}
		want[name][0]++
		for i, s := range systems {
			want[name][1+i] += jct[s][id]
		}
	}
	got := value[map[string][]float64](b, `Object.fromEntries([...document.querySelectorAll("#cells tbody tr")].map(r => {
		const c = r.querySelector("[data-quartile]").dataset;
		return [c.gpus.split("-").at(-1) + "/" + c.quartile,
			[+c.jobs, ...[...r.querySelectorAll("[data-value]")].map(x => +x.dataset.value)]] }))`)
	if len(got) != len(want) || len(got) < 8 {
		t.Errorf("%d groups of jobs, want %d", len(got), len(want))
	}
	for name, w := range want {
		g := got[name]
		if len(g) != len(w) || g[0] != w[0] {
			t.Errorf("%s: %v, want %v jobs", name, g, w[0])
			continue
		}
		for i := 1; i < len(w); i++ {
			if mean := w[i] / w[0]; math.Abs(g[i]-mean) > 1e-3*mean {
				t.Errorf("%s: mean JCT %v under %s, want %v", name, g[i], systems[i-1], mean)
			}
		}
	}
}

// widest returns the largest width of jobs that stand with one of so many GPUs: the next power of two.
func widest(gpus int) int { return 1 << bits.Len(uint(gpus-1)) }

// comparedIntervals checks the intervals of the headline against a document.
func comparedIntervals(t *testing.T, b *browser, text []byte) {
	t.Helper()
	var doc struct {
		Results []struct {
			System string
			JCT    float64 `json:"avg_jct_s"`
			Paired *struct {
				Diff      float64 `json:"mean_jct"`
				Low, High float64
				Blocks    int
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	got := value[[][]float64](b, `[...document.querySelectorAll("#headline tbody tr")].map(
		r => [...r.querySelectorAll("[data-low]")].map(x => [+x.dataset.low, +x.dataset.high]).flat())`)
	for i, r := range doc.Results {
		if i == 0 {
			if r.Paired != nil || len(got[0]) != 0 {
				t.Errorf("%s has an interval against itself", r.System)
			}
			continue
		}
		p, diff := r.Paired, r.JCT/doc.Results[0].JCT-1
		if p == nil || len(got[i]) != 2 || got[i][0] != p.Low || got[i][1] != p.High {
			t.Errorf("%s: the page has %v, --json %+v", r.System, got[i], p)
			continue
		}
		if math.Abs(p.Diff-diff) > 1e-9 || p.Low > diff || p.High < diff || p.Blocks < 20 {
			t.Errorf("%s: %+v, want it around the difference %v", r.System, *p, diff)
		}
	}
}
