package skew

import "fmt"

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

// PSImbalance returns the load of the busiest of k parameter servers over their mean load when tensors (sizes in any
// unit, >= 0) are dealt to them round-robin in the order given: 1 is even, k is all on one. Servers that get no tensor
// count. It is 1 if there is nothing to deal, and panics unless k > 0.
//
// Source: Gu et al., NSDI'19, released simulator, which deals tensors so to as many servers as the job has GPUs.
func PSImbalance(tensors []float64, k int) float64 {
	if k < 1 {
		panic(fmt.Sprintf("skew: %d parameter servers, want > 0", k))
	}
	load := make([]float64, min(k, max(len(tensors), 1)))
	busiest, total := 0.0, 0.0
	for i, t := range tensors {
		load[i%k] += t
		busiest, total = max(busiest, load[i%k]), total+t
	}
	if !(total > 0) {
		return 1
	}
	return busiest / (total / float64(k))
}

// SpreadFactor returns by how much longer an iteration takes when a gang is spread over more nodes than it needs:
// 1 + Penalty*skew, and 1 for skew <= 0. It is >= 1; a gang on as few nodes as possible has factor 1.
//
// Deviation: ours, a proposal; see Penalty.
func SpreadFactor(skew float64) float64 {
	if !(skew > 0) {
		return 1
	}
	return 1 + float64(Penalty*skew)
}
