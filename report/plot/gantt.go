package plot

import (
	"cmp"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// MostBars is how many bars a Gantt draws as shapes. One of more has them as pixels, whose colours suit a light ground
// in every style but Dark.
const MostBars = 20_000

// Groups are what may colour the bars of a Gantt.
var Groups = []string{"model", "user", "class", "width"}

// chart is a Gantt under construction.
type chart struct {
	frame
	t      *timeline.Timeline
	row    float64 // height of a GPU's
	rowOf  map[sched.GPUID]int
	tones  []fill // by attempt
	legend []entry
	end    float64 // of what has happened, in seconds
	lanes  []lane  // by attempt
	names  []shape // of jobs, over their bars
}

// lane is which part of its rows an attempt has, where tenants share a GPU.
type lane struct{ n, of int }

// rowHeight is that of a GPU's row: labels where there are few, and no more than a page for many.
func rowHeight(rows int, font float64) float64 {
	most := font * 42
	return min(max(most/float64(max(rows, 1)), .02), font*1.6)
}

func gantt(s *scene, runs []Run, o *Options) error {
	if err := known(runs); err != nil {
		return err
	}
	r := &runs[0]
	c := newChart(s, r)
	if c.a, c.end = bounds(runs); r.Ahead != nil {
		c.end = max(r.Ahead.At.Seconds(), c.a)
	}
	c.b = c.end
	by := c.colour(o.By)
	more := fmt.Sprintf("%s in %s on %s; colour: %s.", many(len(r.Jobs), "job"), span(c.end-c.a),
		many(len(c.rowOf), "GPU"), by)
	title := "Who held which GPU when: "
	var soon []Expected
	if r.Ahead != nil {
		soon = c.lookAhead(r.Ahead)
		title = "Past, and what is expected: "
		more = fmt.Sprintf("Left of the line: what happened, %s on %s. Right: what was then expected; starts and ends "+
			"fall within the thin lines in 8 of 10 cases. Colour: %s.", span(c.end-c.a), many(len(c.rowOf), "GPU"), by)
	}
	c.y0 = s.head(o.or(title+r.Name), more)
	c.y1 = c.y0 + c.row*float64(len(c.rowOf))
	c.nodes()
	c.bars()
	y := c.y1
	if r.Ahead != nil {
		y = c.expect(r.Ahead, soon)
	}
	c.axis(y)
	y = s.legend(c.x0, y+s.below()+s.font*.7, s.w-s.margin(), c.legend)
	s.h = math.Ceil(y + s.font*.4)
	return nil
}

// newChart returns a chart that has a row for each GPU of a run, node by node.
func newChart(s *scene, r *Run) *chart {
	c := &chart{t: r.Timeline, rowOf: map[sched.GPUID]int{}}
	room := 0.
	for i := range c.t.Nodes {
		n := &c.t.Nodes[i]
		for g := range n.GPUs {
			c.rowOf[n.First+sched.GPUID(g)] = len(c.rowOf)
		}
		room = max(room, widthOf(harmless(n.Name), s.font))
	}
	c.s, c.x1 = s, s.w-s.margin()
	c.x0 = s.margin() + min(max(room, s.font*3), s.w*.2) + 8
	c.row = rowHeight(len(c.rowOf), s.font)
	if r.Ahead != nil {
		c.row *= .72
	}
	return c
}

// nodes writes the names of nodes, and lines between them.
func (c *chart) nodes() {
	row, last := 0, -1e9
	for i := range c.t.Nodes {
		n := &c.t.Nodes[i]
		y, tall := c.y0+float64(row)*c.row, float64(n.GPUs)*c.row
		row += n.GPUs
		if tall >= 4 || i == 0 {
			c.s.stroke(rule, 1, point{c.x0, y}, point{c.x1, y})
		}
		if at := y + tall/2; at-last >= c.s.font*1.1 {
			c.s.write(c.x0-8, at+c.s.font*.35, right, quiet, c.x0-8-c.s.margin()/2, n.Name)
			last = at
		}
	}
}

func (c *chart) axis(y float64) {
	f := c.frame
	f.y1 = y
	f.abscissa(times(c.a, c.b, max(2, int((c.x1-c.x0)/(c.s.font*7)))), brief)
}

// colour gives each attempt a colour, and returns by what: the seven largest groups have a hue each.
func (c *chart) colour(by string) string {
	of := map[string]func(a *timeline.Attempt) string{
		"model": func(a *timeline.Attempt) string { return c.t.Jobs[a.Job].Model },
		"user":  func(a *timeline.Attempt) string { return c.t.Jobs[a.Job].User },
		"class": func(a *timeline.Attempt) string { return c.t.Jobs[a.Job].Class },
		"width": func(a *timeline.Attempt) string { return many(a.Width(), "GPU") },
	}
	hours := map[string]float64{}
	for _, name := range append([]string{by}, "model", "user", "class", "width") {
		if of[name] == nil {
			continue
		}
		clear(hours)
		for i := range c.t.Attempts {
			a := &c.t.Attempts[i]
			hours[of[name](a)] += (c.ended(a) - a.Ordered.Seconds()) * float64(a.Width())
		}
		if len(hours) > 1 || name == by || name == "width" {
			by = name
			break
		}
	}
	groups := make([]string, 0, len(hours))
	for g := range hours {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b string) int { return cmp.Or(cmp.Compare(hours[b], hours[a]), cmp.Compare(a, b)) })
	if by == "width" && len(groups) <= hues {
		slices.SortFunc(groups, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	}
	tones := map[string]tone{}
	for i, g := range groups {
		switch {
		case i < hues-1 || len(groups) == hues:
			tones[g] = hue(i)
			c.legend = append(c.legend, entry{fill: solid(hue(i)), text: cmp.Or(g, "no "+by)})
		default:
			tones[g] = neutral
		}
	}
	if n := len(groups) - len(c.legend); n > 0 {
		c.legend = append(c.legend, entry{fill: solid(neutral), text: count(n) + " others"})
	}
	c.tones = make([]fill, len(c.t.Attempts))
	for i := range c.t.Attempts {
		c.tones[i] = solid(tones[of[by](&c.t.Attempts[i])])
	}
	return by
}

// ended returns when an attempt ended, or what has happened did.
func (c *chart) ended(a *timeline.Attempt) float64 {
	if a.Ended == sched.None {
		return max(c.end, a.Ordered.Seconds())
	}
	return a.Ended.Seconds()
}

// bars draws attempts and GPUs that no job was given, as shapes or pixels.
func (c *chart) bars() {
	n, s := 0, c.s
	for i := range c.t.Attempts {
		n += len(c.t.Attempts[i].GPUs)
	}
	spells := c.t.Spells()
	c.lanes = lanesOf(c.t.Attempts)
	if n+len(spells) > MostBars {
		whole := &scene{w: c.x1 - c.x0, h: c.y1 - c.y0, font: s.font}
		f := c.frame
		c.s, c.x0, c.x1, c.y0, c.y1 = whole, 0, whole.w, 0, whole.h
		c.shapes(spells)
		c.frame = f
		style := Screen
		if s.dark {
			style = Dark
		}
		if img, err := whole.paint(style, 2); err == nil {
			s.shapes = append(s.shapes, shape{kind: raster, at: point{c.x0, c.y0}, w: whole.w, h: whole.h, image: img})
			s.patched = true
		}
		return
	}
	c.shapes(spells)
}

func (c *chart) shapes(spells []timeline.Spell) {
	closed := false
	for i := range spells {
		p := &spells[i]
		x0, x1 := c.x(p.From.Seconds()), c.x(p.To.Seconds())
		if x1 > x0 && p.From.Seconds() < c.end {
			y := c.y0 + float64(c.rowOf[p.GPUs.First])*c.row
			c.s.rect(x0, y, x1-x0, c.row*float64(p.GPUs.Count), fill{tone: neutral, hatched: true})
			closed = true
		}
	}
	redone := false
	for i := range c.t.Attempts {
		redone = c.bar(&c.t.Attempts[i], i) || redone
	}
	c.s.shapes, c.names = append(c.s.shapes, c.names...), nil
	if redone {
		c.legend = append(c.legend, entry{fill: fill{tone: ink, hatched: true}, text: "lost, done again"})
	}
	if closed {
		c.legend = append(c.legend, entry{fill: fill{tone: neutral, hatched: true}, text: "down, drained or asleep"})
	}
}

// bar draws an attempt: pale while it starts and stops, in stripes where its work was lost, which it reports.
func (c *chart) bar(a *timeline.Attempt, i int) (redone bool) {
	start, end := a.Ordered.Seconds(), c.ended(a)
	if start > c.end {
		return false
	}
	stop := end
	if a.Stopped != sched.None {
		stop = min(a.Stopped.Seconds(), end)
	}
	work := stop
	if a.Work != sched.None {
		work = min(a.Work.Seconds(), stop)
	}
	kept := stop
	if a.Kept != sched.None {
		kept = min(max(a.Kept.Seconds(), work), stop)
	}
	gap := min(c.row*.12, 1)
	for _, r := range a.GPUs {
		y, h := c.y0+float64(c.rowOf[r.First])*c.row, float64(r.Count)*c.row
		if l := c.lanes[i]; l.of > 1 { // each GPU's row is split among its tenants
			for g := range r.Count {
				c.phases(i, y+c.row*(float64(g)+float64(l.n)/float64(l.of)), c.row/float64(l.of)-gap,
					[5]float64{start, work, kept, stop, end})
			}
			continue
		}
		c.phases(i, y, h-gap, [5]float64{start, work, kept, stop, end})
		c.label(a, y, h-gap, work, kept)
	}
	return stop > kept
}

func (c *chart) phases(i int, y, h float64, at [5]float64) {
	color, end := c.tones[i], c.x(at[4])
	if end-c.x(at[0]) < 3 { // too thin for parts
		c.s.rect(c.x(at[0]), y, max(end-c.x(at[0]), .5), h, color)
		return
	}
	x := func(t float64) float64 { return min(c.x(t), end-.5) } // a gap to what follows
	for _, p := range []struct {
		from, to float64
		fill     fill
	}{{at[0], at[1], pale(color.tone)}, {at[1], at[3], color}, {at[3], at[4], pale(color.tone)},
		{at[2], at[3], fill{tone: ground, hatched: true}}} {
		if w := x(p.to) - x(p.from); w > 0 {
			c.s.rect(x(p.from), y, w, h, p.fill)
		}
	}
}

// label writes the name of a job into the part of its bar in which it worked, where there is room.
func (c *chart) label(a *timeline.Attempt, y, h, work, kept float64) {
	x0, x1, size := c.x(work), c.x(kept), c.s.font*.86
	if h < size*1.25 || x1-x0 < size*2.5 {
		return
	}
	name := cut(harmless(c.t.Jobs[a.Job].Name), x1-x0-size*.7, size)
	if len([]rune(name)) < 2 {
		return
	}
	c.names = append(c.names, shape{kind: words, at: point{x0 + size*.35, y + min(h, c.s.font*1.6)/2 + size*.35},
		fill: solid(ground), text: name, size: size})
}

// lanesOf gives attempts that share a GPU parts of its row.
func lanesOf(list []timeline.Attempt) []lane {
	lanes, on := make([]lane, len(list)), map[sched.GPUID][]int{}
	for i := range list {
		lanes[i].of = 1
		a := &list[i]
		if a.Marks&timeline.Shared == 0 {
			continue
		}
		group, taken := []int{i}, map[int]bool{}
		for _, r := range a.GPUs {
			for g := r.First; g < r.First+sched.GPUID(r.Count); g++ {
				var still []int
				for _, k := range on[g] {
					if list[k].Ended == sched.None || list[k].Ended > a.Ordered {
						still, group = append(still, k), append(group, k)
						taken[lanes[k].n] = true
					}
				}
				on[g] = append(still, i)
			}
		}
		for taken[lanes[i].n] {
			lanes[i].n++
		}
		most := lanes[i].n + 1
		for _, k := range group {
			most = max(most, lanes[k].of)
		}
		for _, k := range group {
			lanes[k].of = most
		}
	}
	return lanes
}

// heat draws a row for each node, or for several, as dark as the share of its GPU time in which work went on.
func heat(s *scene, runs []Run, o *Options) error {
	if err := known(runs); err != nil {
		return err
	}
	r := &runs[0]
	c := newChart(s, r)
	c.a, c.end = bounds(runs)
	c.b = c.end
	c.y0 = s.head(o.or("Where work went on: "+r.Name), fmt.Sprintf("%s in %s on %s; darker: more of the GPU time of a "+
		"node in which work went on.", many(len(r.Jobs), "job"), span(c.end-c.a), many(len(c.rowOf), "GPU")))
	c.row = max(c.row, min(s.font*1.3*float64(len(c.t.Nodes)), s.font*36)/float64(max(len(c.rowOf), 1)))
	c.y1 = c.y0 + c.row*float64(len(c.rowOf))
	style := Screen
	if s.dark {
		style = Dark
	}
	c.cells(c.warmth(int(c.x1-c.x0)), style)
	c.nodes()
	c.axis(c.y1)
	list := []entry{}
	for i := range 4 {
		list = append(list, entry{fill: fill{tone: hue0, part: float64(i+1) / 4}, text: fmt.Sprint(25*(i+1), "%")})
	}
	s.h = math.Ceil(s.legend(c.x0, c.y1+s.below()+s.font*.7, s.w-s.margin(), list) + s.font*.4)
	return nil
}

// levels is how many strengths a cell may have.
const levels = 20

// warmth returns, for each node and column, the share of GPU time in which work went on, in levels.
func (c *chart) warmth(columns int) [][]float64 {
	nodeOf := map[sched.GPUID]int{}
	sums := make([][]float64, len(c.t.Nodes))
	for n := range c.t.Nodes {
		sums[n] = make([]float64, columns+1)
		for g := range c.t.Nodes[n].GPUs {
			nodeOf[c.t.Nodes[n].First+sched.GPUID(g)] = n
		}
	}
	k := float64(columns) / (c.b - c.a)
	for i := range c.t.Attempts {
		a := &c.t.Attempts[i]
		if a.Work == sched.None {
			continue
		}
		stop := c.ended(a)
		if a.Stopped != sched.None {
			stop = min(stop, a.Stopped.Seconds())
		}
		x0, x1 := max((a.Work.Seconds()-c.a)*k, 0), min((stop-c.a)*k, float64(columns))
		for _, r := range a.GPUs {
			for g := range r.Count {
				spread(sums[nodeOf[r.First+sched.GPUID(g)]], x0, x1)
			}
		}
	}
	for n := range sums {
		level := 0.
		for x := range sums[n] {
			level += sums[n][x]
			sums[n][x] = math.Round(min(max(level/float64(max(c.t.Nodes[n].GPUs, 1)), 0), 1)*levels) / levels
		}
	}
	return sums
}

// spread adds 1 between two places to sums, which are differences from column to column.
func spread(sums []float64, x0, x1 float64) {
	if x1 <= x0 {
		return
	}
	a, b := int(x0), int(x1)
	if a == b {
		sums[a] += x1 - x0
		sums[min(a+1, len(sums)-1)] -= x1 - x0
		return
	}
	head, tail := float64(a+1)-x0, x1-float64(b)
	sums[a] += head
	sums[a+1] += 1 - head
	sums[b] += tail - 1
	if b+1 < len(sums) {
		sums[b+1] -= tail
	}
}

// cells draws the shares: as shapes where they are few, else as pixels.
func (c *chart) cells(sums [][]float64, style Style) {
	type cell struct {
		n, from, to int
		part        float64
	}
	var list []cell
	for n := range sums {
		columns := len(sums[n]) - 1
		for x := 0; x < columns; {
			from := x
			for x < columns && sums[n][x] == sums[n][from] {
				x++
			}
			if sums[n][from] > 0 {
				list = append(list, cell{n, from, x, sums[n][from]})
			}
		}
	}
	tops := make([]float64, len(c.t.Nodes)+1)
	for n := range c.t.Nodes {
		tops[n+1] = tops[n] + float64(c.t.Nodes[n].GPUs)*c.row
	}
	if len(list) <= MostBars {
		for _, l := range list {
			c.s.rect(c.x0+float64(l.from), c.y0+tops[l.n], float64(l.to-l.from), tops[l.n+1]-tops[l.n],
				fill{tone: hue0, part: l.part})
		}
		return
	}
	tall := int(math.Ceil(c.y1 - c.y0))
	img := image.NewRGBA(image.Rect(0, 0, len(sums[0])-1, tall))
	n := 0
	for y := range tall {
		for n+1 < len(c.t.Nodes) && tops[n+1] <= float64(y) {
			n++
		}
		for x := range len(sums[n]) - 1 {
			img.SetRGBA(x, y, style.fixed().rgb(fill{tone: hue0, part: sums[n][x]}))
		}
	}
	c.s.shapes = append(c.s.shapes, shape{kind: raster, at: point{c.x0, c.y0}, w: c.x1 - c.x0, h: c.y1 - c.y0,
		image: img})
	c.s.patched = true
}
