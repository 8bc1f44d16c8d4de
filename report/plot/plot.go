package plot

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// Run is what a picture knows of a run.
type Run struct {
	Name     string
	Result   metrics.Result
	Jobs     []metrics.Job      // nil = figures alone are known
	Timeline *timeline.Timeline // likewise
	Ahead    *Ahead             // what was expected at the end of the run; nil = nothing
}

// Ahead is what was expected at a moment.
type Ahead struct {
	At   sched.Time
	Jobs []Expected // that were not done
}

// Expected is when a job is to start and end: in 8 of 10 cases between Low and High. Start is that of one that waits.
type Expected struct {
	Job        sched.JobID
	Start, End Span
}

// Span is a time as a forecast knows it; sched.Never = not within what it looks at, sched.None = it is not expected.
type Span struct{ Low, Mid, High sched.Time }

// Plan is what a budget buys: the document of trainyard plan --json.
type Plan struct {
	Name     string
	Budget   float64
	JCT      float64 // at the budget, in hours
	Saves    float64 // seconds for each job that one more of the budget saves; 0 = unknown
	Frontier []Corner
}

// Corner is a point of a frontier.
type Corner struct{ Budget, JCT float64 }

// Options say how a picture is made.
type Options struct {
	Width Length // 0 = as fits the style
	Style Style  // "" = Screen
	By    string // what colours the bars of a Gantt: one of Groups; "" = the first that says something
	Title string // "" = what is known of the runs
}

// Length is a length as given, such as 84mm.
type Length struct {
	text   string
	pixels float64
}

// units are those of lengths, in pixels of CSS.
var units = map[string]float64{"mm": 96 / 25.4, "cm": 96 / 2.54, "in": 96, "pt": 96. / 72, "px": 1}

// LengthOf reads a length of 160 to 4000 pixels of CSS, 96 an inch: 84mm, 8.4cm, 3.3in, 240pt, 640px.
func LengthOf(text string) (Length, error) {
	for unit, pixels := range units {
		if n, ok := strings.CutSuffix(text, unit); ok {
			x, err := strconv.ParseFloat(n, 64)
			if px := x * pixels; err == nil && px >= 160 && px <= 4000 && !strings.ContainsAny(n, "xX_ ") {
				return Length{strconv.FormatFloat(x, 'f', -1, 64) + unit, px}, nil
			}
		}
	}
	return Length{}, errors.New("want a length from 160px to 4000px, as in 84mm, 8.4cm, 3.3in, 240pt or 640px")
}

// Kind is what a picture shows.
type Kind struct {
	Name string
	Says string // for people: what it shows
	Most int    // runs, or plans, that it can show
	draw func(*scene, []Run, *Options) error
}

// Kinds are all kinds of runs, in the order in which people are shown them.
var Kinds = []Kind{
	{"gantt", "who held which GPU when", 1, gantt},
	{"heat", "the share of each node's GPU time in which work went on", 1, heat},
	{"cdf", "how many jobs were done within a time, and how long they waited", hues, cdf},
	{"queue", "jobs that wait, and GPUs held, over time", hues, queue},
	{"losses", "where every GPU-hour went; of one run over time, too", 16, losses},
	{"compare", "systems side by side: job completion time, its tail, GPUs at work", 16, compare},
}

// KindOf returns the kind of a name; false if there is none.
func KindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Picture is a picture that was made, to be written.
type Picture struct {
	scene *scene
	style Style
	width Length
}

// Draw makes a picture of runs. What they do not know is an error.
func Draw(k Kind, runs []Run, o Options) (*Picture, error) {
	p := o.start()
	return p, k.draw(p.scene, runs, &o)
}

// start returns an empty picture.
func (o *Options) start() *Picture {
	if o.Style == "" {
		o.Style = Screen
	}
	if o.Width.pixels == 0 {
		o.Width = Length{"840", 840}
		if o.Style == Paper {
			o.Width = Length{"84mm", 84 * units["mm"]}
		}
	}
	s := &scene{w: o.Width.pixels, font: 12, dark: o.Style == Dark}
	if o.Style == Paper {
		s.font = 8.8
	}
	return &Picture{s, o.Style, o.Width}
}

// SVG writes the picture as SVG. Where it has no single ground it is light or dark, as the reader's screen is.
func (p *Picture) SVG(w io.Writer) error { return p.scene.writeSVG(w, p.style, p.width.text) }

// PNG writes the picture as pixels: two for each of CSS, four for paper.
func (p *Picture) PNG(w io.Writer) error {
	scale := 2.
	if p.style == Paper {
		scale = 4
	}
	return p.scene.writePNG(w, p.style, scale)
}

// known fails if a run has figures alone.
func known(runs []Run) error {
	for i := range runs {
		if runs[i].Timeline == nil {
			return fmt.Errorf("%s: figures alone are known of it; want its log, of --events-out", runs[i].Name)
		}
		if len(runs[i].Jobs) == 0 {
			return fmt.Errorf("%s: no job is in it", runs[i].Name)
		}
	}
	return nil
}

// or returns the title that was given, or what is said without one.
func (o *Options) or(text string) string {
	if o.Title != "" {
		return o.Title
	}
	return text
}

// bounds returns the time that runs took, in seconds: from the first arrival to the end of what counts.
func bounds(runs []Run) (from, to float64) {
	from, to = 1e18, -1e18
	for i := range runs {
		l := runs[i].Timeline.Series()
		n := len(l.Held)
		a := l.From.Seconds()
		b := a
		if n > 0 {
			b = a + float64(n-1)*l.Width.Seconds() + l.Last.Seconds()
		}
		from, to = min(from, a), max(to, b)
	}
	if to <= from {
		to = from + 1
	}
	return from, to
}
