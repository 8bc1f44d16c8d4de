package dist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// How much a Learned remembers and when its Version rises. The numbers are ours: a table over 2048 sizes is rebuilt in
// tens of microseconds, 16 sizes give a first idea of a scale, and a growth of an eighth moves a quantile by about as
// much as its own sampling error.
const (
	Window     = 2048 // newest sizes that make up a sample
	FirstCount = 16   // sizes observed when Version first rises
	MostNew    = 128  // new sizes after which Version rises at the latest
	growth     = 8    // Version rises when 1/growth has been added
)

// Learned is a sample of the sizes of finished jobs, folded from events in their order. The newest Window sizes count,
// each the same; nothing is drawn at random, so the same events give the same sample.
//
// The zero value is ready to use. Its state, and so its Sample, is a function of what was observed alone: it is the
// same after Save and Load.
type Learned struct {
	seen    int64     // sizes observed
	rebuilt int64     // value of seen when version last rose
	version int64     // times that the sample changed enough
	ring    []float64 // size number i is ring[i % (Window+MostNew)], for the last len(ring) numbers below seen

	// The sample last made, when rebuilt was madeAt. It follows from what was observed and spares sorting all of it
	// again.
	made   *Empirical
	madeAt int64
}

// ringSize holds a whole sample as of the last rise of Version, and what was observed since.
const ringSize = Window + MostNew

// Observe adds the size of a job that has just finished. It panics if size is not a number in 0..MaxSize.
func (l *Learned) Observe(size float64) {
	if wanted := wrong(size); wanted != "" {
		panic(fmt.Sprintf("dist: observation %d is %v, want %s", l.seen, size, wanted))
	}
	size += 0
	if l.seen < ringSize {
		l.ring = append(l.ring, size)
	} else {
		l.ring[l.seen%ringSize] = size
	}
	l.seen++
	if l.due() {
		l.rebuilt = l.seen
		l.version++
	}
}

// due reports whether enough has been observed since Version last rose.
func (l *Learned) due() bool {
	if l.rebuilt == 0 {
		return l.seen >= FirstCount
	}
	fresh := l.seen - l.rebuilt
	return fresh >= MostNew || fresh*growth >= l.rebuilt
}

// Count returns the number of sizes observed so far, also those that are forgotten.
func (l *Learned) Count() int64 { return l.seen }

// Version is 0 until FirstCount sizes were observed, and rises by 1 whenever the number observed has grown by an eighth
// or by MostNew since it last rose. Tables made from Sample hold as long as it stays the same.
func (l *Learned) Version() int64 { return l.version }

// Sample returns the newest Window sizes as they were when Version last rose, or nil while it is 0. What was observed
// since is left out, so that tables built from it do not depend on when they are built.
func (l *Learned) Sample() *Empirical {
	if l.version == 0 {
		return nil
	}
	from, madeFrom := max(l.rebuilt-Window, 0), max(l.madeAt-Window, 0)
	if l.made == nil || l.madeAt < from || madeFrom < l.seen-int64(len(l.ring)) {
		l.made = sorted(l.sizes(from, l.rebuilt))
	} else {
		gone, fresh := sorted(l.sizes(madeFrom, from)), sorted(l.sizes(l.madeAt, l.rebuilt))
		l.made = &Empirical{merged(l.made.sizes, gone.sizes, fresh.sizes)}
	}
	l.madeAt = l.rebuilt
	return l.made
}

// sizes returns the sizes observed from number from up to number to.
func (l *Learned) sizes(from, to int64) []float64 {
	sizes := make([]float64, 0, to-from)
	for i := from; i < to; i++ {
		sizes = append(sizes, l.ring[i%ringSize])
	}
	return sizes
}

// merged returns sizes without those of gone, all of which it has, and with those of fresh; all are ascending.
func merged(sizes, gone, fresh []float64) []float64 {
	m := make([]float64, 0, len(sizes)-len(gone)+len(fresh))
	for _, s := range sizes {
		if len(gone) > 0 && s == gone[0] {
			gone = gone[1:]
			continue
		}
		for len(fresh) > 0 && fresh[0] < s {
			m = append(m, fresh[0])
			fresh = fresh[1:]
		}
		m = append(m, s)
	}
	return append(m, fresh...)
}

// learnedFormat is the first byte that Save writes.
const learnedFormat = 1

// Save appends the state to b: the format, three counts as uvarints, then the sizes kept, oldest first, as 8 bytes
// each.
func (l *Learned) Save(b []byte) []byte {
	b = append(b, learnedFormat)
	b = binary.AppendUvarint(b, uint64(l.seen))
	b = binary.AppendUvarint(b, uint64(l.rebuilt))
	b = binary.AppendUvarint(b, uint64(l.version))
	for i := l.seen - int64(len(l.ring)); i < l.seen; i++ {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(l.ring[i%ringSize]))
	}
	return b
}

// Load replaces the state by one that Save wrote. On error the state stays as it was.
func (l *Learned) Load(b []byte) error {
	if len(b) == 0 || b[0] != learnedFormat {
		return fmt.Errorf("dist: load: %d bytes that do not start with format %d", len(b), learnedFormat)
	}
	var counts [3]int64
	b = b[1:]
	for i := range counts {
		u, n := binary.Uvarint(b)
		if n <= 0 || u > math.MaxInt64 {
			return fmt.Errorf("dist: load: count %d is cut short or too large", i)
		}
		counts[i], b = int64(u), b[n:]
	}
	next := Learned{seen: counts[0], rebuilt: counts[1], version: counts[2]}
	if err := next.loadSizes(b); err != nil {
		return err
	}
	*l = next
	return nil
}

// loadSizes checks the counts of l against b and fills the ring.
func (l *Learned) loadSizes(b []byte) error {
	kept := min(l.seen, ringSize)
	switch {
	case l.rebuilt > l.seen || l.version > l.rebuilt || (l.rebuilt >= FirstCount) != (l.version > 0) || l.due():
		return fmt.Errorf("dist: load: %d observed, version %d at %d: these do not belong together", l.seen, l.version,
			l.rebuilt)
	case int64(len(b)) != 8*kept:
		return fmt.Errorf("dist: load: %d bytes of sizes, want %d", len(b), 8*kept)
	}
	l.ring = make([]float64, kept)
	for i := l.seen - kept; i < l.seen; i++ {
		size := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if wrong(size) != "" || math.Signbit(size) {
			return errors.New("dist: load: a size that is not a number in range")
		}
		l.ring[i%ringSize], b = size, b[8:]
	}
	return nil
}
