package browser

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// twelve writes the report of the log made by hand, and returns its path.
func twelve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "twelve.html")
	write := exec.Command("go", "test", "-count=1", "-run", "^TestTwelve$", "./report/plot")
	write.Dir, write.Env = root, append(os.Environ(), "TRAINYARD_TWELVE="+path)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// spot is a place in the chart of the twelve jobs: a time, a GPU and how far down its row, the colour there, and which
// job a click finds.
type spot struct {
	at     float64
	gpu    int
	down   float64
	colour string
	job    string // "" = none
}

// Colours of users, who hold most first: bob, gus, fay, ann, hal, di, cy; kim and others have those left, or none.
const (
	bob, gus, fay, ann = "#6b87f9", "#c10000", "#e76406", "#0f6d5c"
	bare               = "#ffffff"
)

// spots are where bars of every kind are.
var spots = []spot{
	{200, 0, .5, ann, "alone"},     // whole
	{200, 1, .5, ann, "alone"},     // on its other GPU
	{250, 3, .5, fay, "grows"},     // before it was resized
	{600, 1, .5, fay, "grows"},     // after it
	{600, 3, .5, fay, "grows"},     // likewise, on both GPUs
	{100, 5, .5, bob, "wide"},      // until it was preempted
	{500, 5, .5, gus, "urgent"},    // by this one
	{970, 9, .5, bob, "wide"},      // again, once its node was back
	{300, 2, .25, "", "left half"}, // tenants of one GPU split its row
	{300, 2, .75, "", "right half"},
	{520, 0, .5, "", "moves"}, // before its migration
	{800, 2, .5, "", "moves"}, // and after
	{740, 0, .5, "", "first"}, // one ends where the next starts
	{790, 0, .5, "", "second"},
	{835, 0, .5, "", "again"}, // two attempts of one job at one instant
	{870, 0, .5, "", "again"},
	{950, 1, .5, "", "last"},
	{300, 9, .5, bare, ""}, // free
	{750, 5, .5, bare, ""},
}

// Ensure that named points of a log of twelve jobs made by hand have the colours of their bars, in three levels and on
// two screens, that a GPU that is down or drained is hatched, and that a click finds each job.
func TestTwelvePixels(t *testing.T) {
	path := twelve(t)
	for _, scale := range []float64{1, 2} {
		b := open(t, 1200, 900, false)
		b.do(chromedp.EmulateViewport(1200, 900, chromedp.EmulateScale(scale)))
		b.show(path)
		for _, level := range []string{"bars", "jobs"} {
			b.goTo("#/time?by=user&level=" + level + "&t0=0&t1=1000")
			b.until(`document.querySelector("canvas.base")?.dataset.level === ` + quoted(level))
			for _, s := range spots {
				if got := b.pixelAt(s.at, 1000, (float64(s.gpu)+s.down)/12); s.colour != "" && got != s.colour {
					t.Errorf("scale %v, %s: GPU %d at %v s is %s, want %s of %q", scale, level, s.gpu, s.at, got,
						s.colour, s.job)
				}
				b.clicks(s)
			}
			for _, closed := range []spot{{at: 700, gpu: 9}, {at: 900, gpu: 5}} {
				if n := b.coloursAround(closed.at, 1000, (float64(closed.gpu)+.5)/12); n != 2 {
					t.Errorf("scale %v, %s: GPU %d at %v s has %d colours, want stripes", scale, level, closed.gpu,
						closed.at, n)
				}
			}
		}
		b.goTo("#/time?level=heat&t0=0&t1=1000")
		b.until(`document.querySelector("canvas.base")?.dataset.level === "heat"`)
		for _, s := range []spot{{200, 5, .5, bob, ""}, {500, 5, .5, bob, ""}, {300, 9, .5, bare, ""},
			{750, 5, .5, bare, ""}, {970, 9, .5, bob, ""}} {
			if got := b.pixelAt(s.at, 1000, (float64(s.gpu)+s.down)/12); got != s.colour {
				t.Errorf("scale %v, heat: node of GPU %d at %v s is %s, want %s", scale, s.gpu, s.at, got, s.colour)
			}
		}
		b.closed()
	}
}

// pixelAt returns the colour of the chart at a time of so many seconds, and so far down.
func (b *browser) pixelAt(at, of, down float64) string {
	b.t.Helper()
	return value[string](b, fmt.Sprintf(`(() => { const c = document.querySelector("canvas.base");
		const d = c.getContext("2d").getImageData(Math.floor(%v * c.width), Math.floor(%v * c.height), 1, 1).data;
		return "#" + [d[0], d[1], d[2]].map(x => x.toString(16).padStart(2, "0")).join("") })()`, at/of, down))
}

// coloursAround returns how many colours there are within a few pixels.
func (b *browser) coloursAround(at, of, down float64) int {
	b.t.Helper()
	return value[int](b, fmt.Sprintf(`(() => { const c = document.querySelector("canvas.base"), seen = new Set();
		const d = c.getContext("2d").getImageData(Math.floor(%v * c.width), Math.floor(%v * c.height), 7, 7).data;
		for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
		return seen.size })()`, at/of, down))
}

// clicks clicks on a spot, which must select its job, or nothing.
func (b *browser) clicks(s spot) {
	b.t.Helper()
	box := value[[]float64](b, `(r => [r.left, r.top, r.width, r.height])(
		document.querySelector("canvas.base").getBoundingClientRect())`)
	b.do(chromedp.MouseClickXY(math.Floor(box[0]+s.at/1000*box[2])+.5,
		math.Floor(box[1]+(float64(s.gpu)+s.down)/12*box[3])))
	want := "Nothing selected."
	if s.job != "" {
		want = "Job " + s.job + ","
	}
	b.drawn()
	if said := value[string](b, `document.querySelector(".said").textContent`); !strings.HasPrefix(said, want) {
		b.t.Errorf("a click at %v s on GPU %d says %q, want %q", s.at, s.gpu, said, want)
	}
}
