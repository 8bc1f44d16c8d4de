package plot

import (
	"fmt"
	"math"
)

// MostPlans is how many plans a picture compares.
const MostPlans = hues

// DrawFrontier draws mean JCT against budget for each plan, with the point that its budget buys.
func DrawFrontier(plans []Plan, o Options) (*Picture, error) {
	p := o.start()
	s := p.scene
	f := frame{s: s, a: math.Inf(1), x0: s.margin() + s.font*4, x1: s.w - s.margin() - s.font}
	for i := range plans {
		if len(plans[i].Frontier) < 2 {
			return nil, fmt.Errorf("%s: a frontier of %s, want two at least", plans[i].Name,
				many(len(plans[i].Frontier), "point"))
		}
		for _, c := range plans[i].Frontier {
			f.a, f.b, f.top = min(f.a, c.Budget), max(f.b, c.Budget), max(f.top, c.JCT)
		}
	}
	more := "Mean JCT, in hours, against the budget: GPUs rented on average, or money per hour. Points: as planned."
	if one := &plans[0]; len(plans) == 1 && one.Saves > 0 {
		more = fmt.Sprintf("Mean JCT against the budget. At %s it is %s; one more of the budget saves each job %s.",
			figure(one.Budget), span(one.JCT*3600), span(one.Saves))
	}
	f.y0 = s.head(o.or("What a budget buys"), more)
	var list []entry
	for i := range plans {
		list = append(list, entry{fill: solid(hue(i)), text: plans[i].Name, line: true})
	}
	f.y0 = s.legend(s.margin(), f.y0, s.w-s.margin(), list) + s.font*.6
	f.y1 = f.y0 + s.font*22
	ticks := rounds(f.top, 5)
	f.top = ticks[len(ticks)-1]
	if f.b <= f.a {
		f.b = f.a + 1
	}
	f.ordinate(ticks, func(v float64) string { return figure(v) + " h" })
	var xs []float64
	for _, v := range rounds(f.b, 8) {
		if v >= f.a && v <= f.b {
			xs = append(xs, v)
		}
	}
	f.abscissa(xs, figure)
	s.write(f.x1, f.y1+s.below()+s.font*.9, right, quiet, s.w, "budget")
	for i := range plans {
		var path []point
		for _, c := range plans[i].Frontier {
			path = append(path, point{f.x(c.Budget), f.y(c.JCT)})
		}
		s.stroke(hue(i), 1.8, path...)
	}
	for i := range plans {
		f.dot(f.x(plans[i].Budget), f.y(plans[i].JCT), hue(i))
	}
	s.h = math.Ceil(f.y1 + s.below() + s.line() + s.font*.3)
	return p, nil
}

// dot draws a round mark with a rim of the ground.
func (f *frame) dot(x, y float64, t tone) {
	for _, d := range []struct {
		radius float64
		tone   tone
	}{{6.2, ground}, {4.6, t}} {
		var path []point
		for i := range 24 {
			a := float64(i) * math.Pi / 12
			path = append(path, point{x + d.radius*math.Cos(a), y + d.radius*math.Sin(a)})
		}
		f.s.area(solid(d.tone), path...)
	}
}
