package progress

import "math"

// counter makes one count of steps of bars that start again with every pass over the data.
//
// Which of several bars counts training steps: the one with the largest total of those that may (see bar.training), and
// from then on all that share its name, figures aside, or its total.
type counter struct {
	began  bool
	name   uint64
	total  int64 // of a pass; 0 = unknown
	at     int64 // of this pass
	base   int64 // steps of the passes before
	passes int64 // that are over
	epochs int64 // passes in all, as an outer bar says; 0 = unknown
}

// take takes in a drawing of a bar, and returns what it says.
func (c *counter) take(b *bar) (m Reading) {
	if b.outer() {
		c.epochs = b.total
		m.setEpoch(float64(b.at))
		return m
	}
	if b.at == 0 || !b.training() { // a bar is drawn once more at 0 before another follows it
		return Reading{}
	}
	if name := nameKey(b.name); !c.began || !c.same(name, b.total) {
		if c.began && b.total <= c.total {
			return Reading{}
		}
		m.Again = c.began
		*c = counter{began: true, name: name, epochs: c.epochs}
	}
	if b.epoch >= 0 {
		c.numbered(&m, b)
	} else {
		c.restarting(&m, b)
	}
	c.total = b.total
	return m
}

// same reports whether a bar is the one that counts. Without names, only about as large ones are: data may be of
// another size in the next pass, but an evaluation within a training is far smaller.
func (c *counter) same(name uint64, total int64) bool {
	if name == c.name && name != noName {
		return true
	}
	return total == c.total || name == c.name && math.Abs(float64(total-c.total)) <= 0.1*float64(c.total)
}

// numbered counts by the number of the epoch.
func (c *counter) numbered(m *Reading, b *bar) {
	done := b.epoch - b.first
	if b.total > 0 && done < 1<<53/b.total {
		m.Step = done*b.total + b.at
		m.Has |= Step
	}
	m.setEpoch(float64(done) + share(b.at, b.total))
	if b.epochs > 0 && b.total > 0 && b.epochs < 1<<53/b.total {
		m.Total = b.epochs * b.total
		m.Has |= Total
	}
}

// restarting counts passes by when the bar starts again.
func (c *counter) restarting(m *Reading, b *bar) {
	if b.at < c.at {
		c.passes++
		if c.base += max(c.total, c.at); c.base > 1<<60 {
			c.base = 0
		}
	}
	c.at = b.at
	m.Step = c.base + min(b.at, 1<<60)
	m.Has |= Step
	switch {
	case c.epochs > 0 && b.total > 0 && c.epochs < 1<<53/b.total:
		m.Total = c.epochs * b.total
		m.Has |= Total
	case c.passes > 0 || b.total > 0:
		if c.passes == 0 {
			m.Total = b.total
		}
		m.Has |= Total
	}
}

// share returns at/total, at most 1, and 0 if the total is unknown.
func share(at, total int64) float64 {
	if total <= 0 {
		return 0
	}
	return min(float64(at)/float64(total), 1)
}

// noName is the key of a name without letters.
const noName uint64 = 14695981039346656037

// nameKey distinguishes names of bars, figures aside, for a name may hold an epoch or a loss: FNV-1a of their letters.
func nameKey(name []byte) uint64 {
	h := noName
	for _, c := range name {
		if letters[c] != 0 {
			h = (h ^ uint64(letters[c])) * 1099511628211
		}
	}
	return h
}

// wordCounter makes one count of the steps that lines in words give. A fall while the epoch rises starts a new pass;
// any other fall is one.
type wordCounter struct {
	at, base int64
	epoch    int64
	step     int64 // counted
	rises    int   // in a row, until they are enough
}

// trusted reports whether steps rose so often in a row that they are taken for such: "step 2/5: build" may be anything.
func (c *wordCounter) trusted() bool { return c.rises >= 5 }

// take takes in a line, and returns what it says.
func (c *wordCounter) take(p *plain) Reading {
	m := p.Reading
	switch {
	case p.inner && p.total > 0 && p.epoch < 1<<53/p.total:
		m.Step = p.epoch*p.total + p.at
		m.setEpoch(float64(p.epoch) + share(p.at, p.total))
	case p.at >= 0:
		if p.at < c.at && p.epoch > c.epoch && c.base < 1<<60 {
			c.base += max(p.total, c.at)
		}
		m.Step = min(c.base, 1<<61) + min(p.at, 1<<61)
		if p.total > 0 && p.epoch < 0 {
			m.Total = p.total
			m.Has |= Total
		}
	default:
		return m
	}
	m.Has |= Step
	if p.epochs > 0 && p.epoch > 0 {
		m.setEpoch(float64(p.epoch - 1))
	}
	switch {
	case c.trusted():
	case m.Step > c.step:
		c.rises++
	default:
		c.rises = 1
	}
	c.at, c.epoch, c.step = p.at, p.epoch, m.Step
	return m
}
