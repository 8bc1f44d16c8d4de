package main

import (
	"math"
	"testing"
)

// meanLoss is the loss that gradient is the gradient of.
func meanLoss(weights []float64, start, n, size int) float64 {
	w, sum := newWorker(trainSeed), 0.0
	for i := start; i < start+n; i++ {
		class := w.data.sample(i%size, w.x[:])
		sum += w.forward(weights, class)
	}
	return sum / float64(n)
}

// Ensure that the gradient is that of the mean loss, by central differences, in both layers and their biases.
func TestGradientAgainstDifferences(t *testing.T) {
	const start, n, size, h = 90, 20, 100, 1e-5
	m := newModel(3, 1)
	grad := m.gradient(start, n, size)
	for k := 0; k < numWeights; k += 13 {
		old := m.weights[k]
		m.weights[k] = old + h
		up := meanLoss(m.weights, start, n, size)
		m.weights[k] = old - h
		down := meanLoss(m.weights, start, n, size)
		m.weights[k] = old
		if want := (up - down) / (2 * h); math.Abs(grad[k]-want) > 1e-6 {
			t.Errorf("gradient of weight %d is %v, want %v", k, grad[k], want)
		}
	}
}

// Ensure that every width computes the same gradient up to rounding, also one with more workers than samples, and that
// one width computes it to the last bit each time.
func TestGradientOfWidths(t *testing.T) {
	const n = 30
	want := newModel(1, 1).gradient(0, n, 100)
	for _, width := range []int{1, 2, 3, 7, n + 5} {
		m := newModel(1, width)
		first := append([]float64(nil), m.gradient(0, n, 100)...)
		for k, g := range first {
			if math.Abs(g-want[k]) > 1e-14 {
				t.Fatalf("width %d: gradient of weight %d is %v, want %v", width, k, g, want[k])
			}
		}
		for range 20 {
			for k, g := range m.gradient(0, n, 100) {
				if g != first[k] {
					t.Fatalf("width %d: gradient of weight %d is %v, and was %v", width, k, g, first[k])
				}
			}
		}
	}
}

// Ensure that the parts of a batch are consecutive, cover it and differ by one sample at most.
func TestParts(t *testing.T) {
	for _, n := range []int{1, 7, 64} {
		for _, width := range []int{1, 3, 8, 100} {
			if part(n, 0, width) != 0 || part(n, width, width) != n {
				t.Errorf("batch %d, width %d: parts from %d to %d", n, width, part(n, 0, width), part(n, width, width))
			}
			for i := range width {
				if size := part(n, i+1, width) - part(n, i, width); size < n/width || size > n/width+1 {
					t.Errorf("batch %d, width %d: part %d has %d samples", n, width, i, size)
				}
			}
		}
	}
}
