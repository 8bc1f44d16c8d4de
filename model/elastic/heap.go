package elastic

// offer is what a job would gain by its next step, for each GPU of it.
type offer struct {
	gain float64
	job  int
}

// before puts the larger gain first, the earlier job among equals.
func (a offer) before(b offer) bool { return a.gain > b.gain || a.gain == b.gain && a.job < b.job }

// heap is a binary heap of offers, the first in front.
type heap []offer

func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

// renew replaces the gain of the front, or drops it if there is none left.
func (h *heap) renew(gain float64) {
	old := *h
	if old[0].gain = gain; gain <= 0 {
		last := len(old) - 1
		old[0] = old[last]
		*h = old[:last]
	}
	h.sink(0)
}

func (h heap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
