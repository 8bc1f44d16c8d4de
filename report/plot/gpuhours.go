package plot

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/metrics/timeline"
)

// dress is how a class of losses is painted, and said.
type dress struct {
	fill fill
	says string
}

// dresses are those of the page. What is idle is neutral, from pale to dark.
var dresses = [timeline.Classes]dress{
	timeline.Useful:      {solid(hue0), "useful"},
	timeline.Redone:      {solid(hue0 + 1), "redone: lost later"},
	timeline.ComingUp:    {solid(hue0 + 2), "coming up"},
	timeline.Stopping:    {solid(hue0 + 3), "stopping"},
	timeline.Down:        {solid(hue0 + 4), "down"},
	timeline.Drained:     {fill{tone: hue0 + 4, part: .7}, "drained"},
	timeline.Foreign:     {fill{tone: hue0 + 4, part: .5}, "foreign"},
	timeline.Quarantined: {fill{tone: hue0 + 4, part: .3}, "quarantined"},
	timeline.Asleep:      {solid(hue0 + 5), "asleep"},
	timeline.Booting:     {fill{tone: hue0 + 5, part: .6}, "booting"},
	timeline.Reserved:    {solid(hue0 + 6), "held for a job"},
	timeline.Unwanted:    {fill{tone: neutral, part: .22}, "idle, no one waits"},
	timeline.TooFew:      {fill{tone: neutral, part: .5}, "idle, too few for any that waits"},
	timeline.Apart:       {fill{tone: neutral, part: .8}, "idle, not together"},
	timeline.Policy:      {solid(hue0 + 7), "idle though one fits"},
}

// losses draws how every GPU-hour of each run was spent, and of one run also when.
func losses(s *scene, runs []Run, o *Options) error {
	if err := known(runs); err != nil {
		return err
	}
	list, most := make([]*timeline.Losses, len(runs)), 0.
	seen := [timeline.Classes]bool{}
	for i := range runs {
		list[i] = runs[i].Timeline.Losses()
		most = max(most, list[i].All.Hours())
		for c := range timeline.Classes {
			seen[c] = seen[c] || list[i].By[c].Hours() > 0
		}
	}
	if most == 0 {
		return fmt.Errorf("%s: no GPU was there for any time, want some", runs[0].Name)
	}
	y := s.head(o.or("Where every GPU-hour went"), "All GPUs, from the first arrival to the end of the last job; "+
		"the parts sum to the whole.")
	entries := []entry{}
	for c := range timeline.Classes {
		if seen[c] {
			entries = append(entries, entry{fill: dresses[c].fill, text: dresses[c].says})
		}
	}
	y = s.legend(s.margin(), y, s.w-s.margin(), entries) + s.font*.3
	y = s.shares(y, runs, list)
	if len(runs) == 1 {
		y = s.overTime(y+s.font, list[0])
	}
	s.h = math.Ceil(y + s.font*.4)
	return nil
}

// shares draws a bar for each run, as long as its GPU-hours are to those of the run that took most.
func (s *scene) shares(y float64, runs []Run, list []*timeline.Losses) float64 {
	room, most := s.names(runs), 0.
	end := s.font * 6.5 // for the GPU-hours
	for _, l := range list {
		most = max(most, l.All.Hours())
	}
	for i, l := range list {
		h, all := s.font*1.9, l.All.Hours()
		x, whole := s.margin()+room, (s.w-2*s.margin()-room-end)*all/most
		s.write(x-s.font*.6, y+h*.64, right, ink, room, runs[i].Name)
		for c := range timeline.Classes {
			part := l.By[c].Hours() / all
			if part == 0 {
				continue
			}
			w := whole * part
			s.rect(x, y, max(w, .3), h, dresses[c].fill).title = harmless(fmt.Sprintf("%s: %s %s", runs[i].Name,
				dresses[c].says, percent(part)))
			if text := percent(part); w > widthOf(text, s.font)+s.font*.4 {
				t := s.write(x+w/2, y+h*.64, middle, ground, w, text)
				if f := dresses[c].fill; f.part < .7 {
					t.fill = solid(ink)
				}
			}
			x += w
		}
		s.write(x+s.font*.5, y+h*.64, left, quiet, end, count(int(math.Round(all)))+" GPU-h")
		y += h + s.font*.5
	}
	return y
}

// names returns the room that the names of runs take on the left, with a gap.
func (s *scene) names(runs []Run) float64 {
	room := 0.
	for i := range runs {
		room = max(room, widthOf(harmless(runs[i].Name), s.font))
	}
	return min(room, s.w*.28) + s.font*.8
}

// overTime draws the classes one above the other over time.
func (s *scene) overTime(y float64, l *timeline.Losses) float64 {
	n := 0
	for c := range timeline.Classes {
		n = max(n, len(l.Over[c]))
	}
	if n == 0 || l.To <= l.From {
		return y
	}
	f := frame{s: s, x0: s.margin() + s.font*3.6, x1: s.w - s.margin() - s.font, y0: y + s.line()*1.5,
		y1: y + s.line()*1.5 + s.font*16, a: l.From.Seconds(), b: l.To.Seconds()}
	t := s.write(s.margin(), y+s.font, left, ink, s.w, "GPUs over time")
	t.bold = true
	join := max(1, int(math.Ceil(float64(n)/((f.x1-f.x0)/3))))
	groups := (n + join - 1) / join
	level, spans, most := make([]float64, groups), make([]float64, groups), 0.
	values := [timeline.Classes][]float64{}
	for g := range groups {
		from := f.a + float64(g*join)*l.Width.Seconds()
		spans[g] = min(from+float64(join)*l.Width.Seconds(), f.b) - from
		sum := 0.
		for c := range timeline.Classes {
			hours := 0.
			for k := g * join; k < min((g+1)*join, len(l.Over[c])); k++ {
				hours += l.Over[c][k].Hours()
			}
			values[c] = append(values[c], hours*3600/max(spans[g], 1e-9))
			sum += values[c][g]
		}
		most = max(most, sum)
	}
	ticks := rounds(most*.999, 4)
	f.top = max(most, 1e-9)
	for c := range timeline.Classes {
		var up, down []point
		any := false
		for g := range groups {
			x0 := f.x(f.a + float64(g*join)*l.Width.Seconds())
			x1 := f.x(f.a + float64(g*join)*l.Width.Seconds() + spans[g])
			low := f.y(level[g])
			level[g] += values[c][g]
			high := f.y(level[g])
			any = any || values[c][g] > 0
			down = append(down, point{x0, low}, point{x1, low})
			up = append(up, point{x0, high}, point{x1, high})
		}
		if any {
			for i := len(down) - 1; i >= 0; i-- {
				up = append(up, down[i])
			}
			s.area(dresses[c].fill, up...)
		}
	}
	for _, v := range ticks {
		if v <= f.top*1.001 {
			s.write(f.x0-6, f.y(v)+s.font*.35, right, quiet, f.x0-6, figure(v))
		}
	}
	f.abscissa(times(f.a, f.b, max(2, int((f.x1-f.x0)/(s.font*7)))), brief)
	return f.y1 + s.below()
}
