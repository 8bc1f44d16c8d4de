package skew

// MB is the number of bytes in the unit of tensor sizes.
const MB = 1 << 20

// PackLimit is the skew above which a job is consolidated (PACKLIMIT).
//
// Deviation: the paper's value is not known to us. Any limit from 0.14 to 0.61 separates the published models that are
// said to need consolidation (VGG, AlexNet) from those that do not (ResNet, Inception).
const PackLimit = 0.3

// Penalty is the relative slow-down of a spread gang of skew 1.
//
// Deviation: ours, a proposal. The published simulator has no effect of placement on time.
const Penalty = 1.0

// Profile is what the profiler learns of a model.
type Profile struct {
	Tensors []float64 // sizes in MB, each > 0, in the order in which they are sent
}

// Skew returns the share of the largest tensor in all bytes, in 0..1, and 0 for a profile without bytes.
//
// Deviation: the paper speaks of the imbalance of bytes over parameter servers, which depends on their number and does
// not separate the published models when there are few. The share of the largest tensor is its limit for many servers,
// divided by their number, and separates them.
func (p Profile) Skew() float64 {
	largest, total := 0.0, 0.0
	for _, t := range p.Tensors {
		largest, total = max(largest, t), total+t
	}
	if !(total > 0) {
		return 0
	}
	return largest / total
}
