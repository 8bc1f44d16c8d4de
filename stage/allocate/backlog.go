package allocate

import (
	"time"

	"github.com/trainyard/trainyard/model/price/step"
	"github.com/trainyard/trainyard/sched"
)

// backlog is how long the work at hand lasts: the horizon of prices. It moves in levels.
type backlog struct {
	level   int        // of step.Levels
	moved   sched.Time // when it moved last; 0 = it has no level yet
	started sched.Time // when the first job was heard of; 0 = none was
	lately  []arrival  // in the last loadWindow, oldest first
}

// arrival is a job that arrived: when, and what it was expected to need.
type arrival struct {
	at         sched.Time
	gpuSeconds float64
}

const (
	loadWindow   = 6 * time.Hour    // over which arrivals make a load
	leastWindow  = time.Hour        // so that a burst makes no rate
	leastMoments = 10               // different times of arrival without which there is no load
	levelEvery   = 15 * time.Minute // the horizon falls by one level in it
)

// note hears of an arrival.
func (b *backlog) note(now sched.Time, gpuSeconds float64) {
	if b.started == 0 {
		b.started = max(now, 1)
	}
	b.lately = append(b.lately, arrival{now, gpuSeconds})
	b.forget(now)
}

// forget drops the arrivals before the window.
func (b *backlog) forget(now sched.Time) {
	n := 0
	for n < len(b.lately) && now.Sub(b.lately[n].at) > loadWindow {
		n++
	}
	b.lately = append(b.lately[:0], b.lately[n:]...)
}

// load returns what arrives over what so many GPUs can do.
func (b *backlog) load(now sched.Time, gpus int) float64 {
	moments, sum, last := 0, 0.0, sched.Time(-1)
	for _, a := range b.lately {
		if now.Sub(a.at) > loadWindow {
			continue
		}
		if sum += a.gpuSeconds; a.at != last {
			moments, last = moments+1, a.at
		}
	}
	if moments < leastMoments || gpus <= 0 {
		return 0
	}
	window := min(max(now.Sub(b.started), leastWindow), loadWindow)
	return sum / float64(float64(gpus)*window.Seconds())
}

// horizon returns that of a backlog of GPU-seconds on so many GPUs. It rises at once, as work comes in, and falls by
// one level for each levelEvery that has gone by since it moved last.
func (b *backlog) horizon(now sched.Time, gpuSeconds float64, gpus int) float64 {
	want := step.Drains(gpuSeconds, gpus, b.load(now, gpus))
	if b.moved == 0 {
		b.level, b.moved = step.Level(-1, want), max(now, 1)
		return step.Levels[b.level]
	}
	level := step.Level(b.level, want)
	if level > b.level {
		b.level, b.moved = level, now
	}
	if most := int(now.Sub(b.moved) / levelEvery); most > 0 && level != b.level {
		b.level -= min(b.level-level, most)
		b.moved = now
	}
	return step.Levels[b.level]
}
