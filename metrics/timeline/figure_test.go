package timeline_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// Ensure that points of a figure sum to what it is in all however few they are, lie between their least and their most,
// and stay within the span that is asked for.
func TestPoints(t *testing.T) {
	c, err := cluster.Load("4x8")
	if err != nil {
		t.Fatal(err)
	}
	g := trace.Generator{Seed: 3, Jobs: 300, Load: 1.1, GPUs: 32, Users: 5, Mix: trace.PhillyMix(),
		Quantum: time.Second}
	line := new(timeline.Timeline)
	q := simulate.Request{Trace: trace.Generate(g), Cluster: c, System: "tiresias-las", Timeline: line}
	if _, err = q.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	l := line.Losses()
	for f, want := range map[timeline.Figure]float64{timeline.Held: l.Held.Hours(), timeline.GPUs: l.All.Hours(),
		timeline.Busy: l.By[timeline.Useful].Plus(l.By[timeline.Redone]).Hours()} {
		for _, most := range []int{1, 7, 512, 2000} {
			p := line.Points(f, 0, sched.Never, most)
			sum := 0.0
			for i, x := range p.List {
				end := p.To
				if i+1 < len(p.List) {
					end = p.List[i+1].From
				}
				sum += x.Mean * end.Sub(x.From).Hours()
				if x.Low > x.Mean+1e-9 || x.Mean > x.High+1e-9 || x.High > 32 {
					t.Errorf("%v, point %d of %d: %+v", f, i, most, x)
				}
			}
			if !p.Known || len(p.List) == 0 || len(p.List) > most || math.Abs(sum-want) > 1e-6*want {
				t.Errorf("%v as %d points of at most %d: %v GPU-hours, want %v", f, len(p.List), most, sum, want)
			}
		}
	}
	whole := line.Points(timeline.Held, 0, sched.Never, 2000)
	middle := line.Points(timeline.Held, l.From.Add(l.To.Sub(l.From)/2), l.To, 2000)
	if n := len(whole.List) - len(whole.List)/2; len(middle.List) < n-1 || len(middle.List) > n+1 ||
		middle.List[0] != whole.List[len(whole.List)-len(middle.List)] {
		t.Errorf("%d points of half of the span, want half of %d, the same", len(middle.List), len(whole.List))
	}
	if in := line.LossesIn(l.From, l.To); in.All != l.All || in.Held != l.Held || in.By != l.By {
		t.Errorf("%+v of the whole span, want %+v", in, l)
	}
	half := l.From.Add(l.To.Sub(l.From) / 2)
	sum, parts := timeline.Area{}, []*timeline.Losses{line.LossesIn(l.From, half-1), line.LossesIn(half, l.To)}
	for _, part := range parts {
		sum = sum.Plus(part.All)
		classes := timeline.Area{}
		for _, a := range part.By {
			classes = classes.Plus(a)
		}
		if want := timeline.AreaOf(32, part.To.Sub(part.From)); classes != want || part.All != want {
			t.Errorf("%v to %v: classes sum to %v, want %v", part.From, part.To, classes, want)
		}
	}
	if twice := parts[0].To.Sub(parts[1].From); twice < 0 || sum != l.All.Plus(timeline.AreaOf(32, twice)) {
		t.Errorf("the halves sum to %v, and share %v, want %v", sum, twice, l.All)
	}
	if one := line.Points(timeline.Held, 0, sched.Never, 1).List; one[0].Low != 0 || one[0].High != 32 {
		t.Errorf("%+v, want 0 to 32 held at some time", one)
	}
	if p := line.Points(timeline.Power, 0, sched.Never, 10); p.Known || len(p.List) > 0 {
		t.Errorf("%+v, want power not known", p)
	}
	if p := line.Points(timeline.Held, l.To.Add(time.Hour), sched.Never, 10); len(p.List) > 0 {
		t.Errorf("%+v behind the end, want none", p)
	}
}
