package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/report/plot"
	"github.com/trainyard/trainyard/report/recorded"
	"github.com/trainyard/trainyard/sched"
)

var rewrite = flag.Bool("rewrite", false, "write the pictures that are compared")

// twelve is a run made by hand, of twelve jobs: shared GPUs, a resize, a migration, a preemption, a node that goes down
// and one that is drained, an attempt of no length, and two at one instant.
func twelve(t testing.TB) plot.Run {
	t.Helper()
	s := runIn(t)
	return plot.Run{Name: s.Name, Result: s.Result, Jobs: s.Jobs, Timeline: s.Timeline}
}

// runIn reads the log of the run of twelve.
func runIn(t testing.TB) report.System {
	t.Helper()
	file, err := os.Open("../testdata/twelve.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := eventlog.NewReader(file, "twelve.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	s, short, err := recorded.Run(r)
	if err != nil || short != nil {
		t.Fatal(err, short)
	}
	return s
}

// other is the same run as it might have been: under another name, with other figures.
func other(t testing.TB) plot.Run {
	r := twelve(t)
	r.Name, r.Jobs = "other", slices.Clone(r.Jobs)
	for i := range r.Jobs {
		r.Jobs[i].Run /= 2
	}
	r.Result.AvgJCT *= 1.5
	return r
}

func svg(t testing.TB, p *plot.Picture, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.SVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var plans = []plot.Plan{{Name: "classes.yaml, boa", Budget: 48, JCT: 2.5, Saves: 12,
	Frontier: []plot.Corner{{20, 9}, {30, 4.5}, {48, 2.5}, {80, 2}}}, {Name: "by hand", Budget: 30, JCT: 5,
	Frontier: []plot.Corner{{25, 8}, {60, 3}}}}

// pictures are one of each kind, and of each style.
func pictures(t *testing.T) map[string]*plot.Picture {
	t.Helper()
	a, b := twelve(t), other(t)
	width, err := plot.LengthOf("84mm")
	if err != nil {
		t.Fatal(err)
	}
	soon := a
	soon.Ahead = &plot.Ahead{At: sched.Time(1000 * time.Second), Jobs: []plot.Expected{
		{Job: 3, Start: plot.Span{Low: sched.Time(1010e9), Mid: sched.Time(1100e9), High: sched.Never},
			End: plot.Span{Low: sched.Time(1200e9), Mid: sched.Time(1300e9), High: sched.Never}},
		{Job: 4, Start: plot.Span{Low: sched.Never, Mid: sched.Never, High: sched.Never},
			End: plot.Span{Low: sched.Never, Mid: sched.Never, High: sched.Never}}}}
	all := map[string]*plot.Picture{}
	add := func(name, kind string, o plot.Options, runs ...plot.Run) {
		k, ok := plot.KindOf(kind)
		if !ok {
			t.Fatalf("no kind %s", kind)
		}
		p, failed := plot.Draw(k, runs, o)
		if failed != nil {
			t.Fatalf("%s: %v", name, failed)
		}
		all[name] = p
	}
	add("gantt", "gantt", plot.Options{}, a)
	add("gantt-dark", "gantt", plot.Options{Style: plot.Dark, By: "width", Title: "In the dark"}, a)
	add("gantt-ahead", "gantt", plot.Options{Style: plot.Paper, Width: width}, soon)
	add("heat", "heat", plot.Options{}, a)
	add("cdf", "cdf", plot.Options{}, a, b)
	add("cdf-paper", "cdf", plot.Options{Style: plot.Paper}, a, b)
	add("queue", "queue", plot.Options{}, a, b)
	add("losses", "losses", plot.Options{}, a)
	add("losses-both", "losses", plot.Options{}, a, b)
	add("compare", "compare", plot.Options{}, a, b)
	if all["frontier"], err = plot.DrawFrontier(plans, plot.Options{}); err != nil {
		t.Fatal(err)
	}
	c := &plot.Coverage{Expected: .8, Leads: []string{"all", "to 1m", "to 10m"},
		Starts: []plot.Judged{{All: 40, Inside: 33}, {All: 28, Inside: 28}, {All: 12, Inside: 5}},
		Ends:   []plot.Judged{{All: 35, Inside: 27}, {All: 35, Inside: 27}, {}}}
	if all["calibration"], err = plot.DrawCalibration(c, plot.Options{}); err != nil {
		t.Fatal(err)
	}
	return all
}

// Ensure that pictures are what they were when they were last looked at, byte for byte, and that they are XML without
// scripts, links and addresses.
func TestGoldens(t *testing.T) {
	for name, p := range pictures(t) {
		got := svg(t, p, nil)
		path := filepath.Join("testdata", name+".svg")
		if *rewrite {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is another picture; look at it, and write it with -rewrite", path)
		}
		harmlessXML(t, name, got)
	}
}

// harmlessXML reads a picture as XML, and returns its texts. It may have no element or attribute that asks or runs.
func harmlessXML(t *testing.T, name, picture string) (texts []string) {
	t.Helper()
	known := []string{"svg", "title", "desc", "style", "rect", "path", "text", "pattern", "image"}
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if !slices.Contains(known, e.Name.Local) {
				t.Errorf("%s: an element %s, want none but %v", name, e.Name.Local, known)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" &&
					!strings.HasPrefix(a.Value, "data:image/png;base64,") {
					t.Errorf("%s: an attribute %s=%.40q", name, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			texts = append(texts, string(e))
		}
	}
}

// hostileNames are of those who would break a picture, or what is around it.
var hostileNames = []string{`</script><img src=x onerror=alert(1)>`, `<!--`, `]]>`, `"'&amp;`, "\u202egnp.exe",
	"\u2067x", "a\x00b\x1b[31m", "\U0001f600", "",
	strings.Repeat("long ", 2000), "\xff\xfe", "שלום", "a\nb\u2028c", "\ufffe"}

// Ensure that names of jobs, users, models, nodes and systems are text in every picture: nothing else becomes of them.
func TestHostileNames(t *testing.T) {
	for n, name := range hostileNames {
		r := twelve(t)
		r.Name = name
		line := *r.Timeline
		line.Jobs, line.Nodes = slices.Clone(line.Jobs), slices.Clone(line.Nodes)
		for i := range line.Jobs {
			j := &line.Jobs[i]
			j.Name, j.User, j.Model, j.Class = name, name, name, name
		}
		for i := range line.Nodes {
			line.Nodes[i].Name = name
		}
		r.Timeline = &line
		for _, k := range plot.Kinds {
			p, err := plot.Draw(k, []plot.Run{r}, plot.Options{By: "user", Title: name})
			if k.Name != "gantt" {
				p, err = plot.Draw(k, []plot.Run{r}, plot.Options{Title: name})
			}
			got := svg(t, p, err)
			if len(got) > 64<<10 {
				t.Errorf("%s of name %d takes %d bytes, want names to be cut", k.Name, n, len(got))
			}
			for _, text := range harmlessXML(t, fmt.Sprint(k.Name, " of name ", n), got) {
				if i := strings.IndexAny(text, "\u202e\u2067\x00\x1b"); i >= 0 {
					t.Errorf("%s of name %d: text %q has a control", k.Name, n, text)
				}
				if open, shut := strings.Count(text, "\u2068"), strings.Count(text, "\u2069"); open != shut {
					t.Errorf("%s of name %d: text %q opens %d isolations and closes %d", k.Name, n, text, open, shut)
				}
			}
			if k.Name != "compare" {
				continue
			}
			if err = p.PNG(io.Discard); err != nil {
				t.Errorf("%s of name %d: %v", k.Name, n, err)
			}
		}
	}
}

// Ensure that the share that a picture says of each class is that of the losses, and that bars of a run fill its whole.
func TestLossesSum(t *testing.T) {
	r := twelve(t)
	k, _ := plot.KindOf("losses")
	p, err := plot.Draw(k, []plot.Run{r}, plot.Options{})
	got := svg(t, p, err)
	l := r.Timeline.Losses()
	for c := range timeline.Classes {
		said := fmt.Sprintf("%.0f%%</title>", 100*l.By[c].Hours()/l.All.Hours())
		if part := l.By[c].Hours() / l.All.Hours(); part > .0995 && !strings.Contains(got, said) {
			t.Errorf("%v is %.1f%%, want the picture to say so", c, part*100)
		}
	}
	sum := 0.
	for _, m := range regexp.MustCompile(`<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)"[^/]*><title>`).
		FindAllStringSubmatch(got, -1) {
		var w float64
		if _, err := fmt.Sscan(m[1], &w); err != nil {
			t.Fatal(err)
		}
		sum += w
	}
	if want := 840 - 22 - 12*6.5; sum < want*.8 || sum > want {
		t.Errorf("the parts are %v pixels wide, want the whole, about %v", sum, want)
	}
}

// Ensure that a Gantt of more bars than MostBars embeds them as pixels, and stays small, and that heat does.
func TestManyBars(t *testing.T) {
	r := twelve(t)
	line := *r.Timeline
	line.Attempts = nil
	for len(line.Attempts) <= plot.MostBars {
		line.Attempts = append(line.Attempts, r.Timeline.Attempts...)
	}
	r.Timeline = &line
	k, _ := plot.KindOf("gantt")
	for _, style := range plot.Styles {
		p, err := plot.Draw(k, []plot.Run{r}, plot.Options{Style: style})
		got := svg(t, p, err)
		if !strings.Contains(got, "data:image/png;base64,") || len(got) > 256<<10 {
			t.Errorf("%s: %d bytes, want a picture in the picture", style, len(got))
		}
		if strings.Contains(got, "prefers-color-scheme") {
			t.Errorf("%s changes its ground, which the pixels do not", style)
		}
	}
}

// Ensure that PNG has the colour of a bar where it is: that of bob in the middle of node c at the end.
func TestPixels(t *testing.T) {
	k, _ := plot.KindOf("gantt")
	p, err := plot.Draw(k, []plot.Run{twelve(t)}, plot.Options{By: "user"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err = p.PNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		x, y int
		want [3]uint32
	}{{1640, 500, [3]uint32{0x6b, 0x87, 0xf9}}, {1000, 300, [3]uint32{0xc1, 0, 0}},
		{600, 500, [3]uint32{255, 255, 255}}} {
		r, g, bl, _ := img.At(x.x, x.y).RGBA()
		if got := [3]uint32{r >> 8, g >> 8, bl >> 8}; got != x.want {
			t.Errorf("pixel %d,%d is %x, want %x", x.x, x.y, got, x.want)
		}
	}
}

// Ensure that what a picture cannot be made of is one error that names it.
func TestUnfit(t *testing.T) {
	figures := plot.Run{Name: "figures"}
	r := twelve(t)
	none := r
	none.Jobs, none.Result = make([]metrics.Job, len(r.Jobs)), metrics.Result{}
	for _, k := range plot.Kinds {
		_, err := plot.Draw(k, []plot.Run{figures}, plot.Options{})
		if err == nil || !strings.Contains(err.Error(), "figures") {
			t.Errorf("%s of figures: %v, want an error that names it", k.Name, err)
		}
	}
	for _, name := range []string{"cdf", "compare"} {
		k, _ := plot.KindOf(name)
		_, err := plot.Draw(k, []plot.Run{none}, plot.Options{})
		if err == nil || !strings.Contains(err.Error(), "no job finished") {
			t.Errorf("%s of a run in which nothing finished: %v", name, err)
		}
	}
	short := []plot.Plan{{Name: "p", Frontier: plans[0].Frontier[:1]}}
	if _, err := plot.DrawFrontier(short, plot.Options{}); err == nil {
		t.Error("a frontier of one point is drawn")
	}
	for _, width := range []string{"", "mm", "84", "1e9mm", "-84mm", "NaNmm", "84em", "1mm", "0x50mm", "8 4mm"} {
		if l, err := plot.LengthOf(width); err == nil {
			t.Errorf("width %q is %v, want an error", width, l)
		}
	}
}

// Ensure that the colours are those of the page.
func TestColours(t *testing.T) {
	page, err := os.ReadFile("../../web/page/palette.ts")
	if err != nil {
		t.Fatal(err)
	}
	hex := regexp.MustCompile(`#[0-9a-f]{6}`)
	parts := strings.Split(string(page), "export const night")
	pictures := pictures(t)
	for i, name := range []string{"gantt", "gantt-dark"} {
		got := svg(t, pictures[name], nil)
		if i == 0 { // the part about the light ground
			got, _, _ = strings.Cut(got, "@media")
		}
		known := hex.FindAllString(parts[i], 11)
		own := []string{"#57606a", "#d5d9df", "#f2f4f7", "#a3abb6", "#333a44", "#1d2129"} // of texts, lines and tracks
		for _, c := range hex.FindAllString(got, -1) {
			if !slices.Contains(known, c) && !slices.Contains(own, c) {
				t.Errorf("%s has the colour %s, which is none of the page's", name, c)
			}
		}
	}
}
