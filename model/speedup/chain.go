package speedup

import (
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// ChainOf returns the Chain of app for widths up to maxGPUs, each on as few nodes of gpusPerNode GPUs as hold it, at
// the best batch size within limits. It takes a call of Best for every phase and width: keep what it returns.
func ChainOf(app App, gpusPerNode, maxGPUs int, limits sched.BatchRange) Chain {
	sizes := app.Sizes()
	chain := make(Chain, len(sizes))
	for phase, size := range sizes {
		chain[phase] = Phase{size, curve(app, phase, gpusPerNode, maxGPUs, limits)}
	}
	return chain
}

func curve(app App, phase, gpusPerNode, maxGPUs int, limits sched.BatchRange) Curve {
	c := Curve{Speed: make([]float64, maxGPUs+1), Batch: make([]int32, maxGPUs+1), Accum: make([]int16, maxGPUs+1)}
	for gpus := 1; gpus <= maxGPUs; gpus++ {
		w, speed := app.Best(phase, gpus, ceilDiv(gpus, gpusPerNode), limits)
		c.Speed[gpus], c.Batch[gpus], c.Accum[gpus] = speed, int32(w.Batch), int16(min(w.Accum, 1<<15-1))
	}
	if slices.Max(c.Batch) == 0 {
		c.Batch = nil
	}
	if slices.Max(c.Accum) <= 1 {
		c.Accum = nil
	}
	return c
}

// Seconds returns how long all phases take on so many GPUs; ok is false if one of them cannot be run so.
func (c Chain) Seconds(gpus int) (seconds float64, ok bool) {
	for _, p := range c {
		if gpus < 0 || gpus >= len(p.Speed) || p.Speed[gpus] == 0 {
			return 0, false
		}
		seconds += p.Size / p.Speed[gpus]
	}
	return seconds, true
}
