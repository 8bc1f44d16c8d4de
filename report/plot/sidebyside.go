package plot

import (
	"fmt"
	"math"

	"github.com/trainyard/trainyard/metrics"
)

// measure is a column of a comparison.
type measure struct {
	title string
	of    func(r *metrics.Result) float64
	text  func(x float64) string
	share bool // of one at most: how it changed is said in no percent
	tone  tone
}

var measures = []measure{
	{"mean JCT", func(r *metrics.Result) float64 { return r.AvgJCT }, span, false, hue0},
	{"p95 JCT", func(r *metrics.Result) float64 { return r.P95JCT }, span, false, hue0 + 2},
	{"GPUs at work", func(r *metrics.Result) float64 { return r.GPUBusy }, percent, true, hue0 + 3},
}

// compare draws a row for each run, with a bar for each measure, and how it differs from the first run.
func compare(s *scene, runs []Run, o *Options) error {
	for i := range runs {
		if runs[i].Result.Finished == 0 {
			return fmt.Errorf("%s: no job finished, want some", runs[i].Name)
		}
	}
	first := &runs[0].Result
	more := fmt.Sprintf("JCT: from submission to end; mean and 95th percentile of the jobs that finished. "+
		"Changes are to %s. ", runs[0].Name)
	y := s.head(o.or("Systems compared"), more+finishedOf(runs))
	room := s.names(runs)
	columns := len(measures)
	if s.w < s.font*45 {
		columns = 2
	}
	gap := s.font * 1.4
	wide := (s.w - 2*s.margin() - room - gap*float64(columns-1)) / float64(columns)
	top := y
	for m := range columns {
		x := s.margin() + room + float64(m)*(wide+gap)
		t := s.write(x, top+s.font, left, ink, wide, measures[m].title)
		t.bold = true
		y = s.column(x, top+s.line()*1.15, wide, &measures[m], runs, first)
	}
	row := top + s.line()*1.15
	for i := range runs {
		s.write(s.margin()+room-s.font*.7, row+s.font*1.12, right, ink, room, runs[i].Name)
		row += s.font * 2.35
	}
	s.h = math.Ceil(y + s.font*.2)
	return nil
}

// column draws a measure of each run.
func (s *scene) column(x, y, wide float64, m *measure, runs []Run, first *metrics.Result) float64 {
	most, text := 0., 0.
	label := func(r *metrics.Result) string {
		t := m.text(m.of(r))
		if c := change(m.of(r), m.of(first)); c != "" && r != first && !m.share {
			t += " " + c
		}
		return t
	}
	for i := range runs {
		most = max(most, m.of(&runs[i].Result))
		text = max(text, widthOf(label(&runs[i].Result), s.font))
	}
	if m.share {
		most = max(most, 1)
	}
	bar := max(wide-text-s.font*.5, wide*.15)
	for i := range runs {
		r := &runs[i].Result
		w, h := 0., s.font*1.5
		if most > 0 {
			w = bar * m.of(r) / most
		}
		if m.share {
			s.rect(x, y, bar, h, solid(panel))
		}
		s.rect(x, y, max(w, 1), h, solid(m.tone))
		at := x + w
		if m.share {
			at = x + bar
		}
		s.write(at+s.font*.4, y+s.font*1.12, left, ink, wide, label(r))
		y += s.font * 2.35
	}
	return y
}
