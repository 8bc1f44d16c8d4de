package speedup

import (
	"maps"
	"math"
	"slices"
)

// nominal is how jobs run on what they ask for.
func (l *Learned) nominal(key poolKey, p *pool) cell {
	at := cell{key.want, int32(ceilDiv(int(key.want), l.perNode)), p.usual}
	if key.batch.Min == key.batch.Max {
		at.batch = key.batch.Max
	}
	return at
}

// stages returns the phases of the mean job of a pool.
func (l *Learned) stages(key poolKey, p *pool) Chain {
	model, nominal := p.model, l.nominal(key, p)
	if p.fitted == 0 { // nothing was reported
		model = Overlap{}.refit(p.timings(nominal)) // one timing: a short search finds it
	}
	if len(p.cells) == 0 {
		return Chain{{Size: p.size(), Curve: l.curve(key, nominal, &model, nil)}}
	}
	ways := slices.SortedFunc(maps.Keys(p.cells), cell.compare)
	overall := p.packed(ways, l.perNode, rates.mean)
	var c Chain
	for stage, size := 0, p.size(); stageStart(stage) < size; stage++ {
		seen := p.packed(ways, l.perNode, func(r rates) float64 { return r.reported(stage) })
		if len(seen) == 0 {
			seen = overall
		}
		seen = withNominal(seen, nominal)
		c = append(c, Phase{Size: min(size, stageEnd(stage)) - stageStart(stage),
			Curve: l.curveOf(key, p, stage, nominal, &model, seen)})
	}
	return c
}

// made is a curve and all that it follows from in addition to the key of its pool.
type made struct {
	nominal cell
	model   Overlap
	seen    []measured
	curve   Curve
}

// curveOf returns the curve of a stage, the one of last time if nothing has changed that it follows from: most of what
// is reported is of one stage, or of how long jobs are.
func (l *Learned) curveOf(key poolKey, p *pool, stage int, nominal cell, model *Overlap, seen []measured) Curve {
	for stage >= len(p.made) {
		p.made = append(p.made, made{})
	}
	m := &p.made[stage]
	if m.curve.Speed == nil || m.nominal != nominal || m.model != *model ||
		!slices.EqualFunc(m.seen, seen, measured.equal) {
		*m = made{nominal, *model, slices.Clone(seen), l.curve(key, nominal, model, seen)}
	}
	return m.curve
}

// withNominal adds what work means where it was not measured: rate 1 on what is asked for.
func withNominal(seen []measured, nominal cell) []measured {
	i, ok := slices.BinarySearchFunc(seen, int(nominal.gpus), compareWidth)
	if ok {
		return seen
	}
	return slices.Insert(seen, i, measured{gpus: int(nominal.gpus), rate: 1, batch: nominal.batch})
}

func compareWidth(m measured, gpus int) int { return m.gpus - gpus }

// curve gives widths measured in a stage as they are, and the others by the fitted model, corrected.
func (l *Learned) curve(key poolKey, nominal cell, model *Overlap, seen []measured) Curve {
	samples := nominal.samples(nominal)
	modelled := func(gpus int) float64 {
		return float64(samples) / model.Update(gpus, ceilDiv(gpus, l.perNode), ceilDiv(samples, gpus), 1)
	}
	for i := range seen {
		seen[i].off = math.Log(seen[i].rate / modelled(seen[i].gpus))
	}
	c := Curve{Speed: make([]float64, l.maxGPUs+1), Batch: make([]int32, l.maxGPUs+1)}
	for gpus := 1; gpus <= l.maxGPUs; gpus++ {
		i, ok := slices.BinarySearchFunc(seen, gpus, compareWidth)
		switch {
		case ok:
			c.Speed[gpus], c.Batch[gpus] = seen[i].rate, seen[i].batch
		case key.batch.PerGPU > 0 && ceilDiv(samples, gpus) > int(key.batch.PerGPU): // not possible
		case i == len(seen) && i > 1:
			c.Speed[gpus], c.Batch[gpus] = beyond(seen, gpus), nominal.batch
		default:
			c.Speed[gpus], c.Batch[gpus] = modelled(gpus)*math.Exp2(math.Log2E*offAt(seen, i, gpus)), nominal.batch
		}
	}
	if slices.Max(c.Batch) == 0 {
		c.Batch = nil
	}
	return c
}

// offAt returns by what the model is off at a width between those of seen[i-1] and seen[i], linear in the logarithm of
// the width; beyond what was measured, as at the end.
func offAt(seen []measured, i, gpus int) float64 {
	switch {
	case len(seen) == 0:
		return 0
	case i == 0:
		return seen[0].off
	case i == len(seen):
		return seen[i-1].off
	}
	a, b := &seen[i-1], &seen[i]
	return mix(a.off, b.off, share(math.Log(float64(gpus)), math.Log(float64(a.gpus)), math.Log(float64(b.gpus))))
}

// beyond returns the rate on more GPUs than were measured in a stage: up to twice as many, it goes on as it went from
// half the widest or less to the widest; further on nothing more is gained. So a width that pays is found by doubling,
// whatever others stages of the training are like.
func beyond(seen []measured, gpus int) float64 {
	last := &seen[len(seen)-1]
	i := len(seen) - 2
	for i > 0 && 2*seen[i].gpus > last.gpus {
		i--
	}
	slope := math.Log2(last.rate/seen[i].rate) / math.Log2(float64(last.gpus)/float64(seen[i].gpus))
	more := min(float64(gpus)/float64(last.gpus), 2)
	return last.rate * math.Exp2(min(slope, 1)*math.Log2(more))
}

// usualBatch returns the batch size that ran longest, the smaller of two; 0 without any.
func (p *pool) usualBatch() (usual int32) {
	seconds := make(map[int32]float64)
	for _, at := range slices.SortedFunc(maps.Keys(p.cells), cell.compare) {
		for _, r := range p.cells[at] {
			seconds[at.batch] += r.seconds
		}
	}
	for _, batch := range slices.Sorted(maps.Keys(seconds)) {
		if batch > 0 && (usual == 0 || seconds[batch] > seconds[usual]) {
			usual = batch
		}
	}
	return usual
}

// unknownBatch is how many samples for each GPU asked a job is taken to train with where no one has said.
const unknownBatch = 64

// samples returns the samples of an update in a cell.
func (c cell) samples(nominal cell) int {
	switch {
	case c.batch > 0:
		return int(c.batch)
	case nominal.batch > 0:
		return int(nominal.batch)
	}
	return unknownBatch * int(nominal.gpus)
}

// timings returns what was measured, in order, and that the nominal rate is 1 if nothing was measured there.
func (p *pool) timings(nominal cell) []Timing {
	rates := map[cell]float64{nominal: 1}
	for at, r := range p.cells {
		rates[at] = r.mean()
	}
	var list []Timing
	for _, at := range slices.SortedFunc(maps.Keys(rates), cell.compare) {
		samples := at.samples(nominal)
		list = append(list, Timing{GPUs: int(at.gpus), Nodes: int(at.nodes), PerGPU: ceilDiv(samples, int(at.gpus)),
			Step: float64(samples) / rates[at]})
	}
	return list
}

// mean returns the rate over all stages that were seen, each as often as a job goes through it.
func (r rates) mean() float64 {
	var work, seconds float64
	for stage := range r {
		if reported := r[stage].reported; reported > 0 {
			size := stageEnd(stage) - stageStart(stage)
			work, seconds = work+size, seconds+size/reported
		}
	}
	return work / seconds
}

// said returns the rate in a stage, 0 = it was not seen.
func (r rates) reported(stage int) float64 {
	if stage >= len(r) {
		return 0
	}
	return r[stage].reported
}

type measured struct {
	gpus  int
	rate  float64
	batch int32
	off   float64 // logarithm of rate over that of the model
}

// equal reports whether the same was measured.
func (m measured) equal(o measured) bool {
	return m.gpus == o.gpus && m.rate == o.rate && m.batch == o.batch
}

// packed returns the best rate of each width measured on as few nodes as hold it, in order of width; ties go to the
// smaller batch size. The ways are those of all cells, in order.
func (p *pool) packed(ways []cell, perNode int, rate func(rates) float64) (list []measured) {
	for _, at := range ways {
		gpus, reported := int(at.gpus), rate(p.cells[at])
		if int(at.nodes) != ceilDiv(gpus, perNode) || reported == 0 {
			continue
		}
		switch n := len(list); {
		case n == 0 || list[n-1].gpus != gpus:
			list = append(list, measured{gpus: gpus, rate: reported, batch: at.batch})
		case reported > list[n-1].rate:
			list[n-1].rate, list[n-1].batch = reported, at.batch
		}
	}
	return list
}
