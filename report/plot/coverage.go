package plot

import (
	"errors"
	"math"
	"strconv"
)

// Coverage is how often forecasts came true.
type Coverage struct {
	Expected float64 // share inside their intervals where forecasts are right, 0 to 1
	Leads    []string
	Starts   []Judged // by lead
	Ends     []Judged // likewise
}

// Judged counts forecasts of which it is known what came.
type Judged struct{ All, Inside int }

// DrawCalibration draws the share of starts and ends that came inside the interval that was said, by how far ahead it
// was said. That nothing could be judged yet is an error.
func DrawCalibration(c *Coverage, o Options) (*Picture, error) {
	judged := 0
	for _, list := range [][]Judged{c.Starts, c.Ends} {
		for _, j := range list {
			judged += j.All
		}
	}
	if judged == 0 {
		return nil, errors.New("no forecast could be judged yet, want one at least")
	}
	p := o.start()
	s := p.scene
	f := frame{s: s, b: float64(len(c.Leads)), top: 1, x0: s.margin() + s.font*4, x1: s.w - s.margin() - s.font}
	f.y0 = s.head(o.or("How often forecasts came true"), "Share of starts and ends that came inside the interval that "+
		"was said, by how far ahead. The line is where forecasts are right, "+percent(c.Expected)+
		"; numbers say how many could be judged.")
	f.y0 = s.legend(s.margin(), f.y0, s.w-s.margin(), []entry{{fill: solid(hue(0)), text: "starts"},
		{fill: solid(hue(1)), text: "ends"}}) + s.font*.6
	f.y1 = f.y0 + s.font*18
	f.ordinate([]float64{0, .2, .4, .6, .8, 1}, percent)
	column := f.x(1) - f.x(0)
	for k, lead := range c.Leads {
		for i, list := range [][]Judged{c.Starts, c.Ends} {
			if j := list[k]; j.All > 0 {
				part, w := float64(j.Inside)/float64(j.All), column*.3
				x := f.x(float64(k)+.5) + (float64(i)-1)*w
				s.rect(x+1, f.y(part), w-2, f.y1-f.y(part), solid(hue(i))).title = harmless(lead + ": " + percent(part))
				at, t := f.y1-s.font*.5, ground // in the bar, or above one that is too low
				if f.y1-f.y(part) < s.font*1.6 {
					at, t = f.y(part)-s.font*.35, quiet
				}
				s.write(x+w/2, at, middle, t, w, strconv.Itoa(j.All))
			}
		}
		s.write(f.x(float64(k)+.5), f.y1+4+s.font*1.05, middle, quiet, column-2, lead)
	}
	s.stroke(quiet, 1, point{f.x0, f.y1}, point{f.x1, f.y1})
	s.stroke(ink, 1.4, point{f.x0, f.y(c.Expected)}, point{f.x1, f.y(c.Expected)})
	s.h = math.Ceil(f.y1 + s.below() + s.font*.3)
	return p, nil
}
