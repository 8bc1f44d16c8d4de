package browser

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// spent returns figures of the renderer by their names, as Chromium counts them: seconds of CPU, bytes.
func (b *browser) spent() map[string]float64 {
	b.t.Helper()
	out := map[string]float64{}
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		answer, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range answer.Metrics {
			out[m.Name] = m.Value
		}
		return nil
	}))
	return out
}

// BenchmarkLargeReport opens the report of 100,000 jobs on 2,816 GPUs: CPU of the renderer until it is usable, its
// heap, the median of 20 repaints at each level, sorting and filtering the table of jobs.
func BenchmarkLargeReport(b *testing.B) {
	dir := b.TempDir()
	trace, path := filepath.Join(dir, "jobs.csv"), filepath.Join(dir, "large.html")
	if err := os.WriteFile(trace, run(b, "trace", "generate", "--like", "philly", "--jobs", "100000", "--load", "0.9",
		"--cluster", "352x8", "--seed", "1"), 0o644); err != nil {
		b.Fatal(err)
	}
	run(b, "simulate", "--trace", trace, "--cluster", "352x8", "--system", "tiresias-las", "--report", path)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := open(b, 1280, 900, false)
		p.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, failed := chromedp.Call(ctx, performance.Enable, performance.EnableParams{
				TimeDomain: performance.EnableTimeDomainThreadTicks})
			return failed
		}))
		p.show(path)
		p.drawn()
		seen := p.spent()
		b.ReportMetric(seen["ProcessTime"], "open-s")
		b.ReportMetric(seen["JSHeapUsedSize"]/1e6, "heap-MB")
		for _, level := range []string{"heat", "bars", "jobs"} {
			p.goTo("#/time?level=" + level)
			p.until(`document.querySelector("canvas.base")?.dataset.level === ` + quoted(level))
			value[bool](p, `document.querySelector(".gantt").focus(), true`)
			p.do(chromedp.KeyEvent("+"))
			p.drawn()
			b.ReportMetric(1e3*median(20, func(i int) float64 {
				return p.costs(func() { p.do(chromedp.KeyEvent([]string{kb.ArrowRight, kb.ArrowLeft}[i%2])) })
			}), level+"-ms")
		}
		b.ReportMetric(1e3*median(20, func(int) float64 {
			return p.costs(func() { value[bool](p, onePass) })
		}), "pass-ms")
		p.goTo("#/jobs")
		p.until(`document.querySelector("#shown") !== null`)
		b.ReportMetric(1e3*p.costs(func() {
			value[bool](p, `document.querySelectorAll(".line.head button")[5].click(), true`)
		}), "sort-ms")
		b.ReportMetric(1e3*p.costs(func() {
			value[bool](p, `(() => { const e = document.querySelector("#search"); e.value = "gpus>4 wait>3600";
				e.dispatchEvent(new Event("input", {bubbles: true})); return true })()`)
		}), "filter-ms")
	}
	b.ReportMetric(float64(info.Size())/1e6, "file-MB")
}

// onePass is what any repaint must do: one pass over as many bars as Philly has, and one fill of the pixels, which are
// then shown.
const onePass = `(() => {
	const canvas = document.querySelector("canvas.base"), {width, height} = canvas, n = 354598;
	const bars = window.bars ??= Array.from({length: 3}, (_, k) => Float64Array.from({length: n}, (_, i) =>
		k < 2 ? Math.min(1, i / n + k * 0.002) : i * 7919 % 2816 / 2816));
	const image = window.image ??= new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
	pixels.fill(0xffffffff);
	for (let i = 0; i < n; i++) {
		const line = Math.floor(bars[2][i] * height) * width, to = line + Math.floor(bars[1][i] * (width - 1));
		for (let at = line + Math.floor(bars[0][i] * (width - 1)); at <= to; at++) pixels[at] = 0xff000000 | i;
	}
	canvas.getContext("2d").putImageData(image, 0, 0);
	return true;
})()`

// costs returns the seconds of the main thread of the renderer that something takes, until it is drawn.
func (b *browser) costs(do func()) float64 {
	b.t.Helper()
	before := b.spent()["TaskDuration"]
	do()
	b.drawn()
	return b.spent()["TaskDuration"] - before
}

// median returns the median of n figures.
func median(n int, of func(int) float64) float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = of(i)
	}
	slices.Sort(list)
	return math.Abs(list[n/2])
}
