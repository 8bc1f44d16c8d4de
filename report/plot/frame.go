package plot

import "math"

// frame is a field with two axes.
type frame struct {
	s              *scene
	x0, y0, x1, y1 float64 // corners in pixels, y0 the upper one
	a, b           float64 // what x is at the left and at the right
	top            float64 // what y is at the upper edge; 0 at the lower
	log            bool    // x is in logarithms
}

func (f *frame) x(v float64) float64 {
	part := (v - f.a) / (f.b - f.a)
	if f.log {
		part = math.Log(max(v, f.a)/f.a) / math.Log(f.b/f.a)
	}
	return f.x0 + min(max(part, 0), 1)*(f.x1-f.x0)
}

func (f *frame) y(v float64) float64 { return f.y1 - v/f.top*(f.y1-f.y0) }

// ordinate draws lines and numbers of the upright axis.
func (f *frame) ordinate(list []float64, text func(float64) string) {
	for _, v := range list {
		y := f.y(v)
		f.s.stroke(rule, 1, point{f.x0, y}, point{f.x1, y})
		f.s.write(f.x0-6, y+f.s.font*.35, right, quiet, f.x0-6, text(v))
	}
}

// abscissa draws marks and texts below the field, as many as have room.
func (f *frame) abscissa(list []float64, text func(float64) string) {
	free := -1e9
	for _, v := range list {
		x, t := f.x(v), text(v)
		half := widthOf(t, f.s.font) / 2
		if x-half < free || x+half > f.s.w {
			continue
		}
		free = x + half + f.s.font*.8
		f.s.stroke(rule, 1, point{x, f.y1}, point{x, f.y1 + 4})
		f.s.write(x, f.y1+4+f.s.font*1.05, middle, quiet, half*2+1, t)
	}
	f.s.stroke(quiet, 1, point{f.x0, f.y1}, point{f.x1, f.y1})
}

// below is the height that abscissa takes below the field.
func (s *scene) below() float64 { return 4 + s.line() }

// head writes the title and a line below it, and returns where the rest starts.
func (s *scene) head(title, more string) float64 {
	s.name, s.about = harmless(title), harmless(more)
	y := s.font * 1.5
	t := s.write(s.margin(), y, left, ink, s.w-2*s.margin(), "")
	t.size, t.bold = s.font*1.15, true
	t.text = cut(s.name, (s.w-2*s.margin())*.94, t.size)
	y += s.line()
	for _, line := range wrapped(s.about, s.w-2*s.margin(), s.font) {
		s.write(s.margin(), y, left, quiet, s.w, line)
		y += s.line()
	}
	return y - s.line() + s.font*.9
}

func (s *scene) margin() float64 { return math.Round(s.font * .9) }

// wrapped cuts a sentence into lines.
func wrapped(text string, room, size float64) (lines []string) {
	line, word := "", ""
	flush := func() {
		if line != "" && widthOf(line+" "+word, size) > room {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line, word = line+word, ""
	}
	for _, r := range text {
		if r == ' ' {
			flush()
			continue
		}
		word += string(r)
	}
	flush()
	return append(lines, line)
}

// entry is one of a legend.
type entry struct {
	fill fill
	text string
	line bool // a line's, not an area's
	dash bool
}

// legend writes entries in as many lines as they take, and returns where the rest starts.
func (s *scene) legend(x0, y, x1 float64, list []entry) float64 {
	x, box := x0, math.Round(s.font*.85)
	for _, e := range list {
		text := cut(harmless(e.text), min(s.font*22, x1-x0-box*2), s.font)
		wide := box + s.font*.45 + widthOf(text, s.font) + s.font
		if x > x0 && x+wide-s.font > x1 {
			x, y = x0, y+s.line()
		}
		if e.line {
			s.stroke(e.fill.tone, 2.2, point{x, y + box/2}, point{x + box, y + box/2}).dashed = e.dash
		} else {
			if e.fill.hatched {
				s.rect(x, y, box, box, fill{tone: e.fill.tone, part: .16})
			}
			s.rect(x, y, box, box, e.fill)
		}
		s.write(x+box+s.font*.45, y+box*.92, left, ink, x1, text)
		x += wide
	}
	if len(list) == 0 {
		return y
	}
	return y + s.line()
}
