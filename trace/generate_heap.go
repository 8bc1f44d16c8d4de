package trace

// The open bursts of a tide are a binary heap: the first is the one whose next job comes first.

func (t *tide) before(i, k int) bool {
	a, b := t.open[i], t.open[k]
	return a.at < b.at || a.at == b.at && a.number < b.number
}

func (t *tide) push(b *burst) {
	t.open = append(t.open, b)
	for i := len(t.open) - 1; i > 0 && t.before(i, (i-1)/2); i = (i - 1) / 2 {
		t.open[i], t.open[(i-1)/2] = t.open[(i-1)/2], t.open[i]
	}
}

// pop removes the first.
func (t *tide) pop() {
	last := len(t.open) - 1
	t.open[0], t.open[last] = t.open[last], nil
	t.open = t.open[:last]
	t.sink()
}

// sink moves the first to its place.
func (t *tide) sink() {
	for i := 0; ; {
		first := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(t.open); k++ {
			if t.before(k, first) {
				first = k
			}
		}
		if first == i {
			return
		}
		t.open[i], t.open[first] = t.open[first], t.open[i]
		i = first
	}
}
