package main

import (
	"math"
	"math/rand/v2"
)

// The task: separate classes. Each is two clouds of points in space, and the clouds of different classes overlap.
const (
	inputs  = 16
	classes = 8
	clouds  = 2
	noise   = 1.0 // standard deviation of a cloud, and of its centre around 0, per coordinate
)

// Every run sees the same data, whatever its seed.
const (
	taskSeed    = 0x7261696e // centres of the clouds
	trainSeed   = taskSeed + 1
	heldOutSeed = taskSeed + 2
)

// dataset is a list of samples that are generated when read: sample i depends on the seed and on i alone. Samples are
// independent, so training takes them in order of i and needs no shuffling. Each goroutine needs a dataset of its own.
type dataset struct {
	centres *[classes][clouds][inputs]float64 // shared, read only
	seed    uint64
	source  *rand.PCG
	rand    *rand.Rand
}

func newDataset(seed uint64) *dataset {
	source := rand.NewPCG(taskSeed, 0)
	d := &dataset{centres: new([classes][clouds][inputs]float64), seed: seed, source: source, rand: rand.New(source)}
	for class := range d.centres {
		for cloud := range d.centres[class] {
			for k := range d.centres[class][cloud] {
				d.centres[class][cloud][k] = d.rand.NormFloat64()
			}
		}
	}
	return d
}

// sample writes the input of sample i to x, len(x) == inputs, and returns its class.
func (d *dataset) sample(i int, x []float64) (class int) {
	d.source.Seed(d.seed, uint64(i))
	class = d.rand.IntN(classes)
	centre := &d.centres[class][d.rand.IntN(clouds)]
	for k := range x {
		x[k] = centre[k] + noise*d.rand.NormFloat64()
	}
	return class
}

// softmax turns scores into probabilities in place and returns the cross-entropy with the class.
func softmax(scores []float64, class int) float64 {
	top := scores[0]
	for _, s := range scores {
		top = max(top, s)
	}
	own, sum := scores[class]-top, 0.0
	for k, s := range scores {
		scores[k] = math.Exp(s - top)
		sum += scores[k]
	}
	for k := range scores {
		scores[k] /= sum
	}
	return math.Log(sum) - own
}
