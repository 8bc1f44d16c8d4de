package shim

import (
	"log/slog"
	"math"
	"os"
	"time"
)

// Limits of what an attempt writes, in bytes of the disk.
const (
	// leftFree is what outputs leave of the disk, whatever they may take.
	leftFree = 64 << 20
	// meanwhile is room for what is written between two looks.
	meanwhile = 32 << 20
	// leastKept is kept of an output, however full the disk is.
	leastKept = 16 << 20
	block     = 4 << 10
)

// How often it is looked how much an attempt has written: the faster it writes, the sooner.
const (
	lookLeast = 5 * time.Millisecond
	lookMost  = 100 * time.Millisecond
)

// outputCap keeps the output of an attempt within its limits. The job writes to the file itself: where that takes too
// much, the middle is given back to the disk. Start and end are kept, and all that stays is where it was.
type outputCap struct {
	file   *os.File
	max    int64 // bytes; 0 = none but those of the disk
	size   int64 // at the last look
	looked time.Time
	failed bool // holes cannot be made here, which was reported
}

// watch looks until stop is closed, and once more then.
func (c *outputCap) watch(stop <-chan struct{}) {
	for pause := lookLeast; ; {
		select {
		case <-stop:
			c.look()
			return
		case <-time.After(pause):
			pause = c.look()
		}
	}
}

// look makes a hole if the output takes too much, and returns when to look again: before what is left is half used, as
// fast as it grows.
func (c *outputCap) look() time.Duration {
	size, taken, free, err := takes(c.file)
	if err != nil || c.failed {
		return lookMost
	}
	limit := c.limit(taken, free)
	if taken > limit {
		c.cut(size, limit)
		limit += limit / 4
	}
	now := time.Now()
	grown, took := max(size-c.size, 0), now.Sub(c.looked)
	c.size, c.looked = size, now
	if grown == 0 {
		return lookMost
	}
	left := float64(max(limit-taken, 0)) / float64(grown) * float64(took) / 2
	return max(lookLeast, min(lookMost, time.Duration(min(left, float64(lookMost)))))
}

// limit is how many bytes an output that takes some may take in all.
func (c *outputCap) limit(taken, free int64) int64 {
	limit := int64(math.MaxInt64)
	if c.max > 0 {
		limit = c.max
	}
	return max(min(limit, taken+free-leftFree-meanwhile), leastKept)
}

// cut gives the middle of an output of a length back: an eighth of the limit stays at its start, half at its end.
func (c *outputCap) cut(size, limit int64) {
	from := (limit/8 + block - 1) / block * block
	to := (size - limit/2) / block * block
	if to <= from {
		return
	}
	if err := punch(c.file, from, to); err != nil {
		c.failed = true
		slog.Warn("the output cannot be kept within its limits here", "error", err)
	}
}
