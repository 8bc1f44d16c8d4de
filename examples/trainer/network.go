package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
)

const hidden = 48

// numWeights is the length of a model's weights: of the hidden layer a row of inputs and a bias for each unit, then of
// the output layer a row of hidden units and a bias for each class.
const numWeights = hidden*(inputs+1) + classes*(hidden+1)

// heldOut is the number of samples that the loss is measured on.
const heldOut = 256

// tests is the number of samples that the accuracy at the end is measured on.
const tests = 10_000

// model is a perceptron with one hidden layer of rectified units and a softmax, trained data-parallel.
type model struct {
	weights []float64 // len numWeights
	workers []*worker // len is the width
	judge   *worker   // measures the loss
}

// worker computes on a part of a batch, for one goroutine.
type worker struct {
	data   *dataset
	grad   []float64 // len numWeights
	x      [inputs]float64
	active [hidden]float64
	scores [classes]float64
}

func newWorker(seed uint64) *worker {
	return &worker{data: newDataset(seed), grad: make([]float64, numWeights)}
}

// newModel returns a model of the given width > 0 with the initial weights of the seed (He et al., 2015, section 2.2).
func newModel(seed uint64, width int) *model {
	m := &model{weights: make([]float64, numWeights), judge: newWorker(heldOutSeed)}
	for range width {
		m.workers = append(m.workers, newWorker(trainSeed))
	}
	r := rand.New(rand.NewPCG(seed, 0))
	first, second := layers(m.weights)
	for _, l := range []struct {
		weights []float64
		fanIn   int
	}{{first, inputs}, {second, hidden}} {
		for k := range l.weights {
			if k%(l.fanIn+1) != l.fanIn { // a bias starts at 0
				l.weights[k] = r.NormFloat64() * math.Sqrt(2/float64(l.fanIn))
			}
		}
	}
	return m
}

// layers cuts weights, or a gradient, into those of the hidden and of the output layer. A row ends with its bias.
func layers(weights []float64) (first, second []float64) {
	cut := hidden * (inputs + 1)
	return weights[:cut], weights[cut:]
}

// gradient returns the gradient of the mean loss over the batch of n samples from sample start on, where sample numbers
// wrap around at size. The batch is cut into one part for each worker, as equal as can be. The parts are added in the
// order of the workers, not in that of their finishing: the result depends on the width and on nothing else. It is
// valid until the next call.
func (m *model) gradient(start, n, size int) []float64 {
	var group sync.WaitGroup
	for i, w := range m.workers {
		from, to := part(n, i, len(m.workers)), part(n, i+1, len(m.workers))
		group.Go(func() { w.accumulate(m.weights, start+from, start+to, size) })
	}
	group.Wait()
	sum := m.workers[0].grad
	for _, w := range m.workers[1:] {
		for k, g := range w.grad {
			sum[k] += g
		}
	}
	for k := range sum {
		sum[k] /= float64(n)
	}
	return sum
}

// part returns where the part of worker i of width starts in a batch of n.
func part(n, i, width int) int { return n * i / width }

// apply takes one step of SGD.
func (m *model) apply(grad []float64, rate float64) {
	for k, g := range grad {
		m.weights[k] -= rate * g
	}
}

// loss returns the mean cross-entropy over the held-out samples.
func (m *model) loss() float64 {
	sum := 0.0
	for i := range heldOut {
		class := m.judge.data.sample(i, m.judge.x[:])
		sum += m.judge.forward(m.weights, class)
	}
	return sum / heldOut
}

// accuracy returns the share of the test samples, those behind the held-out ones, whose class has the highest score.
func (m *model) accuracy() float64 {
	right := 0
	for i := range tests {
		class := m.judge.data.sample(heldOut+i, m.judge.x[:])
		m.judge.forward(m.weights, class)
		if m.judge.scores[class] == slices.Max(m.judge.scores[:]) {
			right++
		}
	}
	return float64(right) / tests
}

// hash returns the SHA-256 of the weights, each as little-endian float64.
func (m *model) hash() string {
	sum := sha256.Sum256(encodeWeights(m.weights))
	return hex.EncodeToString(sum[:])
}

func encodeWeights(weights []float64) []byte {
	data := make([]byte, 0, 8*len(weights))
	for _, w := range weights {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(w))
	}
	return data
}

// accumulate sets w.grad to the sum of the gradients of samples from..to-1, modulo size.
func (w *worker) accumulate(weights []float64, from, to, size int) {
	clear(w.grad)
	for i := from; i < to; i++ {
		class := w.data.sample(i%size, w.x[:])
		w.forward(weights, class)
		w.backward(weights, class)
	}
}

// forward sets w.active and w.scores, which become probabilities, from w.x, and returns the loss.
func (w *worker) forward(weights []float64, class int) float64 {
	first, second := layers(weights)
	for j := range w.active {
		w.active[j] = max(0, dot(first[j*(inputs+1):], w.x[:]))
	}
	for k := range w.scores {
		w.scores[k] = dot(second[k*(hidden+1):], w.active[:])
	}
	return softmax(w.scores[:], class)
}

// dot returns the product of x with the row's first len(x) weights, plus the bias that follows them.
func dot(row, x []float64) float64 {
	sum := row[len(x)]
	for k, v := range x {
		sum += row[k] * v
	}
	return sum
}

// backward adds the gradient of the sample that forward saw last.
func (w *worker) backward(weights []float64, class int) {
	_, second := layers(weights)
	gradFirst, gradSecond := layers(w.grad)
	var back [hidden]float64
	for k, p := range w.scores {
		if k == class {
			p--
		}
		row := second[k*(hidden+1):]
		for j := range back {
			back[j] += p * row[j]
		}
		addRow(gradSecond[k*(hidden+1):], w.active[:], p)
	}
	for j, b := range back {
		if w.active[j] > 0 {
			addRow(gradFirst[j*(inputs+1):], w.x[:], b)
		}
	}
}

// addRow adds scale times x, and scale for the bias, to a row of a gradient.
func addRow(row, x []float64, scale float64) {
	for k, v := range x {
		row[k] += scale * v
	}
	row[len(x)] += scale
}
