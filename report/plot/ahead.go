package plot

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// mostSoon is how many jobs that wait have a row of their own.
const mostSoon = 12

// lookAhead makes room for what is expected, and returns the jobs that are to start next, the earliest first.
func (c *chart) lookAhead(a *Ahead) (soon []Expected) {
	for _, e := range a.Jobs {
		if e.Start.Mid != sched.None {
			soon = append(soon, e)
		}
	}
	slices.SortFunc(soon, func(x, y Expected) int {
		return cmp.Or(cmp.Compare(x.Start.Mid, y.Start.Mid), cmp.Compare(x.Start.High, y.Start.High),
			cmp.Compare(x.Job, y.Job))
	})
	soon = soon[:min(len(soon), mostSoon)]
	far := c.end
	for _, e := range a.Jobs {
		runs := e.Start.Mid == sched.None
		if !runs && !slices.ContainsFunc(soon, func(s Expected) bool { return s.Job == e.Job }) {
			continue
		}
		if e.End.Mid != sched.Never {
			far = max(far, e.End.Mid.Seconds())
		}
	}
	c.b = c.end + min(max(far-c.end, (c.end-c.a)*.15), (c.end-c.a)*.8)*1.06
	return soon
}

// expect draws what is expected: bars go on pale, jobs that wait have rows of their own. It returns where they end.
func (c *chart) expect(a *Ahead, soon []Expected) float64 {
	running := map[sched.JobID]Span{}
	for _, e := range a.Jobs {
		if e.Start.Mid == sched.None {
			running[e.Job] = e.End
		}
	}
	for i := range c.t.Attempts {
		at := &c.t.Attempts[i]
		end, ok := running[at.Job]
		if !ok || at.Ended != sched.None {
			continue
		}
		for k, r := range at.GPUs {
			y, h := c.y0+float64(c.rowOf[r.First])*c.row, float64(r.Count)*c.row
			c.future(c.end, end, y, h-min(c.row*.12, 1), c.tones[i].tone, k == 0)
		}
	}
	y, s := c.y1, c.s
	if len(soon) > 0 {
		y += s.font * .5
		s.write(s.margin(), y+s.line()*.8, left, quiet, c.x(c.end)-s.margin()-8, "waiting, the next to start first")
		y += s.line() * .25
	}
	for _, e := range soon {
		h := s.font * 1.15
		name := c.t.Jobs[e.Job].Name
		if strings.Trim(name, "0123456789") == "" {
			name = "job " + cmp.Or(name, strconv.Itoa(int(e.Job)))
		}
		if e.Start.Mid != sched.Never {
			c.future(e.Start.Mid.Seconds(), e.End, y, h-2, neutral, true)
			c.whisker(e.Start, y+h*.3, ink)
			c.s.write(c.x(c.end)-6, y+h*.75, right, ink, s.font*14, name)
		}
		y += h + 1
	}
	x := c.x(c.end)
	s.stroke(ink, 1.4, point{x, c.y0 - s.font*.35}, point{x, y + 2})
	return y + 3
}

// future draws a bar that is expected to end within a span, pale, with the span as a line.
func (c *chart) future(from float64, end Span, y, h float64, t tone, line bool) {
	to := c.b
	if end.Mid != sched.Never {
		to = min(end.Mid.Seconds(), c.b)
	}
	if x0, x1 := c.x(from), c.x(to); x1 > x0 {
		c.s.rect(x0, y, x1-x0, h, fill{tone: t, part: .3})
	}
	if line && h >= 3 {
		c.whisker(end, y+h*.62, t)
	}
}

// whisker draws a span as a thin line.
func (c *chart) whisker(p Span, y float64, t tone) {
	if p.Low == sched.Never {
		return
	}
	low, high := p.Low.Seconds(), c.b
	if p.High != sched.Never {
		high = min(p.High.Seconds(), c.b)
	}
	if low >= c.b {
		return
	}
	x0, x1 := c.x(max(low, c.end)), c.x(high)
	c.s.stroke(t, 1.2, point{x0, y}, point{math.Max(x1, x0+1), y})
}
