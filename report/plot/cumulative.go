package plot

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
)

// panelsOf returns fields side by side, or one below the other where that is too narrow, each with a title.
func (s *scene) panelsOf(y, gutter float64, titles ...string) (list []frame, bottom float64) {
	n := len(titles)
	if s.w < s.font*45 {
		n = 1
	}
	gap := s.font * 1.5
	wide, tall := (s.w-2*s.margin()-gap*float64(n-1))/float64(n), s.font*17
	for i, title := range titles {
		x, top := s.margin()+float64(i%n)*(wide+gap), y+float64(i/n)*(tall+s.below()+s.line()*1.9)
		t := s.write(x, top+s.font, left, ink, wide, title)
		t.bold = true
		top += s.line() * 1.5
		list = append(list, frame{s: s, x0: x + gutter, x1: x + wide - s.font*.8, y0: top, y1: top + tall})
		bottom = top + tall + s.below()
	}
	return list, bottom
}

// named are entries of a legend for runs, one hue each.
func named(runs []Run) (list []entry) {
	for i := range runs {
		list = append(list, entry{fill: solid(hue(i)), text: runs[i].Name, line: true})
	}
	return list
}

// cdf draws, for each run, which share of the jobs that finished took less than a time, and waited less.
func cdf(s *scene, runs []Run, o *Options) error {
	if err := known(runs); err != nil {
		return err
	}
	y := s.head(o.or("How long jobs took, and how long they waited"),
		"Share of the jobs that finished: from submission to end, and the part of it without GPUs. "+finishedOf(runs))
	y = s.legend(s.margin(), y, s.w-s.margin(), named(runs))
	list, bottom := s.panelsOf(y+s.font*.4, s.font*3.2, "JCT", "time without GPUs")
	for i, of := range []func(j *metrics.Job) float64{
		func(j *metrics.Job) float64 { return j.JCT().Seconds() },
		func(j *metrics.Job) float64 { return j.Queue().Seconds() },
	} {
		if err := list[i].distribution(runs, of); err != nil {
			return err
		}
	}
	s.h = math.Ceil(bottom + s.font*.6)
	return nil
}

// finishedOf says how many jobs finished, where that differs between runs.
func finishedOf(runs []Run) string {
	same := true
	for i := range runs {
		same = same && runs[i].Result.Finished == runs[0].Result.Finished
	}
	if same {
		return fmt.Sprintf("%s of %d finished.", count(runs[0].Result.Finished), runs[0].Result.Jobs)
	}
	return "Not all finished the same jobs: the lines are of different ones."
}

// distribution draws the share of jobs below a time, on an axis of logarithms.
func (f *frame) distribution(runs []Run, of func(j *metrics.Job) float64) error {
	all, least, most := make([][]float64, len(runs)), math.Inf(1), 0.
	for i := range runs {
		for k := range runs[i].Jobs {
			if j := &runs[i].Jobs[k]; j.Outcome == sched.Finished {
				t := of(j)
				all[i], most = append(all[i], t), max(most, t)
				if t > 0 {
					least = min(least, t)
				}
			}
		}
		if len(all[i]) == 0 {
			return fmt.Errorf("%s: no job finished, want some", runs[i].Name)
		}
		slices.Sort(all[i])
	}
	if math.IsInf(least, 1) {
		least, most = 1, 10
	}
	f.a, f.b, f.top, f.log = max(least*.8, most/1e5), most*1.15, 1, true
	f.ordinate([]float64{0, .25, .5, .75, 1}, func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) })
	f.abscissa(decades(f.a, f.b), brief)
	for i, list := range all {
		path, last := []point{}, -1.
		for k, t := range list {
			if k+1 < len(list) && list[k+1] == t {
				continue
			}
			x, share := f.x(t), float64(k+1)/float64(len(list))
			if len(path) > 0 && x-last < .5 && k+1 < len(list) {
				continue
			}
			if len(path) == 0 {
				path = append(path, point{x, f.y1})
			} else {
				path = append(path, point{x, path[len(path)-1].y})
			}
			path, last = append(path, point{x, f.y(share)}), x
		}
		f.s.stroke(hue(i), 1.8, append(path, point{f.x1, f.y0})...)
	}
	return nil
}

// queue draws jobs that wait and GPUs held over time, for each run.
func queue(s *scene, runs []Run, o *Options) error {
	if err := known(runs); err != nil {
		return err
	}
	y := s.head(o.or("The queue, and the GPUs at work"), "Means over time, from the first arrival on.")
	y = s.legend(s.margin(), y, s.w-s.margin(), named(runs))
	list, bottom := s.panelsOf(y+s.font*.4, s.font*3.6, "jobs that wait", "GPUs held")
	from, to := bounds(runs)
	most := [2]float64{}
	values := make([][2][]float64, len(runs))
	for i := range runs {
		t := runs[i].Timeline.Series()
		values[i] = [2][]float64{t.Queue, t.Held}
		most[0] = max(most[0], slices.Max(append(t.Queue, 0)))
		most[1] = max(most[1], slices.Max(append(t.GPUs, 0)))
	}
	for p := range list {
		f := &list[p]
		f.a, f.b = from, to
		ticks := rounds(most[p], 5)
		f.top = ticks[len(ticks)-1]
		f.ordinate(ticks, figure)
		f.abscissa(times(f.a, f.b, max(2, int((f.x1-f.x0)/(s.font*5)))), brief)
		for i := range runs {
			t := runs[i].Timeline.Series()
			f.series(values[i][p], t.From.Seconds(), t.Width.Seconds(), t.Last.Seconds(), hue(i))
		}
	}
	s.h = math.Ceil(bottom + s.font*.6)
	return nil
}

// series draws means of buckets: as steps, or where there are more than have room each, the mean of several.
func (f *frame) series(values []float64, from, width, last float64, t tone) {
	if len(values) == 0 {
		return
	}
	join := max(1, int(math.Ceil(float64(len(values))/((f.x1-f.x0)/1.5))))
	path := []point{{f.x(from), f.y1}}
	for i := 0; i < len(values); i += join {
		sum, weight := 0., 0.
		for k := i; k < min(i+join, len(values)); k++ {
			w := width
			if k == len(values)-1 && last > 0 {
				w = last
			}
			sum, weight = sum+values[k]*w, weight+w
		}
		y := f.y(sum / weight)
		path = append(path, point{f.x(from + float64(i)*width), y}, point{f.x(from + float64(i)*width + weight), y})
	}
	f.s.stroke(t, 1.5, append(path, point{path[len(path)-1].x, f.y1})...)
}
