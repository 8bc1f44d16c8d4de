package speedup

import "slices"

// Measured is a Process that was measured at some numbers of samples and is linear between them; beyond it is unknown.
type Measured struct {
	Samples []int     // ascending
	Time    []float64 // seconds of each, > 0
}

// Seconds interpolates.
func (m Measured) Seconds(samples int) float64 {
	i, found := slices.BinarySearch(m.Samples, samples)
	switch {
	case found:
		return m.Time[i]
	case i == 0 || i == len(m.Samples):
		return 0
	}
	return mix(m.Time[i-1], m.Time[i], share(float64(samples), float64(m.Samples[i-1]), float64(m.Samples[i])))
}

// ReduceTable is a Reducer measured by number of GPUs, linear between them and constant beyond.
type ReduceTable struct {
	GPUs []int     // ascending, > 1
	Time []float64 // seconds of each
}

// Seconds interpolates.
func (r ReduceTable) Seconds(gpus, _ int) float64 {
	i, found := slices.BinarySearch(r.GPUs, gpus)
	switch {
	case found || i == 0:
		return r.Time[i]
	case i == len(r.GPUs):
		return r.Time[i-1]
	}
	return mix(r.Time[i-1], r.Time[i], share(float64(gpus), float64(r.GPUs[i-1]), float64(r.GPUs[i])))
}
