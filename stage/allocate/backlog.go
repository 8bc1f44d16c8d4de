package allocate

import (
	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// backlog is how long the work at hand lasts: the horizon of prices. It moves in levels.
type backlog struct {
	level   int        // of step.Levels
	moved   sched.Time // when it moved last; 0 = it has no level yet
	started sched.Time // when the first job was heard of; 0 = none was
	lately  []arrival  // in the last LoadWindow, oldest first
}

// arrival is a job that arrived: when, and what it was expected to need.
type arrival struct {
	at         sched.Time
	gpuSeconds float64
}

// note hears of an arrival.
func (b *backlog) note(c *Constants, now sched.Time, gpuSeconds float64) {
	if b.started == 0 {
		b.started = max(now, 1)
	}
	b.lately = append(b.lately, arrival{now, gpuSeconds})
	b.forget(c, now)
}

// forget drops the arrivals before the window.
func (b *backlog) forget(c *Constants, now sched.Time) {
	n := 0
	for n < len(b.lately) && now.Sub(b.lately[n].at) > c.LoadWindow {
		n++
	}
	b.lately = append(b.lately[:0], b.lately[n:]...)
}

// load returns what arrives over what so many GPUs can do.
func (b *backlog) load(c *Constants, now sched.Time, gpus int) float64 {
	moments, sum, last := 0, 0.0, sched.Time(-1)
	for _, a := range b.lately {
		if now.Sub(a.at) > c.LoadWindow {
			continue
		}
		if sum += a.gpuSeconds; a.at != last {
			moments, last = moments+1, a.at
		}
	}
	if moments < c.LeastMoments || gpus <= 0 {
		return 0
	}
	window := min(max(now.Sub(b.started), c.LeastWindow), c.LoadWindow)
	return sum / float64(float64(gpus)*window.Seconds())
}

// horizon returns that of a backlog of GPU-seconds on so many GPUs. It rises at once, as work comes in, and falls by
// one level for each LevelEvery that has gone by since it moved last.
func (b *backlog) horizon(c *Constants, now sched.Time, gpuSeconds float64, gpus int) float64 {
	want := step.Drains(float64(c.Stretch*gpuSeconds), gpus, b.load(c, now, gpus))
	if b.moved == 0 {
		b.level, b.moved = step.Level(-1, want), max(now, 1)
		return step.Levels[b.level]
	}
	level := step.Level(b.level, want)
	if level > b.level {
		b.level, b.moved = level, now
	}
	if most := int(now.Sub(b.moved) / c.LevelEvery); most > 0 && level != b.level {
		b.level -= min(b.level-level, most)
		b.moved = now
	}
	return step.Levels[b.level]
}
