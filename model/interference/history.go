package interference

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// MaxSlow is the largest slow-down that is taken for one.
const MaxSlow = 1e4

// History remembers what was measured of sets. The zero value is empty and ready to use; its exported field must not
// change while it is used.
type History struct {
	// HalfLife is the age at which a measurement counts half as much as a new one; 0 = all count alike.
	HalfLife time.Duration

	index   map[string]int
	list    []entry // in the order in which sets became known
	changes int
}

// Changes counts what was recorded, or loaded: while it stays the same, so do all answers.
func (h *History) Changes() int { return h.changes }

// entry is a set in its place.
type entry struct {
	place  Place
	models []string // sorted
	slow   []mean   // of each
	worst  float64  // the largest slow-down measured of any
	oom    bool     // it ran out of memory
	last   sched.Time
}

// mean is a running mean of measurements that count less as they age.
// squares: sum of weights squared; off: weighted squares of deviations
type mean struct{ weight, squares, mean, off float64 }

func (m *mean) add(x, decay float64) {
	m.weight, m.squares, m.off = m.weight*decay+1, m.squares*decay*decay+1, m.off*decay
	d := x - m.mean
	m.mean += d / m.weight
	m.off += float64(d * (x - m.mean))
}

// err returns the standard error of the mean, +Inf if less than two measurements' worth is known.
func (m *mean) err() float64 {
	effective := m.weight * m.weight / m.squares
	if effective < 1.5 {
		return math.Inf(1)
	}
	variance := m.off / (m.weight - m.squares/m.weight)
	return math.Sqrt(variance / effective)
}

// Record takes what was measured of a set at a time: the slow-down of each of models, in their order. Equal models of a
// set are kept apart by rank, the faster first.
func (h *History) Record(p Place, models []string, slow []float64, at sched.Time) error {
	if err := checkSet(p, models); err != nil {
		return err
	}
	if len(slow) != len(models) {
		return fmt.Errorf("interference: %d slow-downs of %d jobs, want one each", len(slow), len(models))
	}
	for i, x := range slow {
		if !(x > 0 && x <= MaxSlow) {
			return fmt.Errorf("interference: slow-down %v of %q, want a number > 0 up to %v", x, models[i], MaxSlow)
		}
	}
	byName := make([]int, len(models))
	for i := range byName {
		byName[i] = i
	}
	slices.SortStableFunc(byName, func(a, b int) int {
		return cmp.Or(strings.Compare(models[a], models[b]), cmp.Compare(slow[a], slow[b]))
	})
	e := h.entry(p, models)
	decay := h.decay(e, at)
	for k, i := range byName {
		e.slow[k].add(slow[i], decay)
		e.worst = max(e.worst, slow[i])
	}
	return nil
}

// RecordOne takes the slow-down of member i of models alone, as an epoch of one job shows it.
func (h *History) RecordOne(p Place, models []string, i int, slow float64, at sched.Time) error {
	if err := checkSet(p, models); err != nil {
		return err
	}
	if !(slow > 0 && slow <= MaxSlow) {
		return fmt.Errorf("interference: slow-down %v of %q, want a number > 0 up to %v", slow, models[i], MaxSlow)
	}
	e := h.entry(p, models)
	k := slices.Index(e.models, models[i])
	for k+1 < len(e.models) && e.models[k+1] == models[i] && e.slow[k+1].weight < e.slow[k].weight {
		k++ // of equal models the one that is known least
	}
	e.slow[k].add(slow, h.decay(e, at))
	e.worst = max(e.worst, slow)
	return nil
}

// RecordOOM remembers that a set ran out of memory: it and every set that contains it are refused from then on, see
// Refused.
func (h *History) RecordOOM(p Place, models []string, at sched.Time) error {
	if err := checkSet(p, models); err != nil {
		return err
	}
	e := h.entry(p, models)
	e.oom, e.last = true, max(e.last, at)
	return nil
}

// entry returns the entry of a set, which is about to change, a new one if it is not known.
func (h *History) entry(p Place, models []string) *entry {
	h.changes++
	sorted := slices.Sorted(slices.Values(models))
	k := key(p, sorted)
	i, known := h.index[k]
	if !known {
		if h.index == nil {
			h.index = make(map[string]int)
		}
		i = len(h.list)
		h.index[k] = i
		h.list = append(h.list, entry{place: p, models: sorted, slow: make([]mean, len(sorted))})
	}
	return &h.list[i]
}

// decay returns what earlier measurements of e still count for at a time, and takes that time for the latest.
func (h *History) decay(e *entry, at sched.Time) float64 {
	age := max(at.Sub(e.last), 0)
	e.last = max(e.last, at)
	if h.HalfLife <= 0 {
		return 1
	}
	return math.Exp2(-float64(age) / float64(h.HalfLife))
}

// find returns what is known of the part of sorted models that mask picks, nil if nothing. name starts with the place's
// part of its key.
func (h *History) find(name []byte, sorted []string, mask uint) *entry {
	for i, m := range sorted {
		if mask>>i&1 == 1 {
			name = appendName(name, m)
		}
	}
	if i, ok := h.index[string(name)]; ok {
		return &h.list[i]
	}
	return nil
}

// Refused reports whether the set, or a part of it, ran out of memory before.
func (h *History) Refused(p Place, models []string) (bool, error) {
	if err := checkSet(p, models); err != nil {
		return false, err
	}
	sorted, name := slices.Sorted(slices.Values(models)), placeName(p)
	for mask := uint(1); mask < 1<<len(models); mask++ {
		if e := h.find(name, sorted, mask); e != nil && e.oom {
			return true, nil
		}
	}
	return false, nil
}

// Slowdowns appends the estimate of each member of set, in its order, to dst:
//
//  1. what was measured of the set;
//  2. what was measured of the largest part of the set that the member is in, times the prior of the set over that of
//     the part (of parts of equal size the worst);
//  3. the prior of the set.
//
// Deviation: EaCO's page leaves open what "a recorded subset plus a generic factor" is; the quotient of priors keeps
// what the part has suffered already from being counted twice.
func (h *History) Slowdowns(p Place, set []Member, dst []Estimate) ([]Estimate, error) {
	models := make([]string, len(set))
	for i, m := range set {
		models[i] = m.Model
		if !(m.Use >= 0 && m.Use <= 1) {
			return dst, fmt.Errorf("interference: use %v of %q, want 0..1", m.Use, m.Model)
		}
	}
	if err := checkSet(p, models); err != nil {
		return dst, err
	}
	from := len(dst)
	for i := range set {
		dst = append(dst, Estimate{Slow: prior(p.How, set, i), Source: Prior, Error: math.Inf(1)})
	}
	if len(set) == 1 {
		dst[from] = Estimate{Slow: 1, Source: Alone}
		return dst, nil
	}
	h.improve(p, set, models, dst[from:])
	return dst, nil
}

// improve puts what was measured of the set and its parts in place of the priors in est.
func (h *History) improve(p Place, set []Member, models []string, est []Estimate) {
	at := make([]int, len(set)) // of each sorted model, equal ones in the order of the set
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int { return strings.Compare(models[a], models[b]) })
	sorted := make([]string, len(set))
	for k, i := range at {
		sorted[k] = models[i]
	}
	name, size := placeName(p), make([]int, len(set)) // size: of the part behind each estimate
	part := make([]Member, 0, len(set))
	for mask := uint(1); mask < 1<<len(set); mask++ {
		n := bits.OnesCount(mask)
		if n < 2 {
			continue
		}
		e := h.find(name, sorted, mask)
		if e == nil {
			continue
		}
		part = part[:0]
		for k, i := range at {
			if mask>>k&1 == 1 {
				part = append(part, set[i])
			}
		}
		rank := 0
		for k, i := range at {
			if mask>>k&1 == 0 {
				continue
			}
			if x := e.estimate(p, set, i, part, rank); x.Weight > 0 &&
				(n > size[i] || n == size[i] && x.Slow > est[i].Slow) {
				est[i], size[i] = x, n
			}
			rank++
		}
	}
}

// estimate returns what e, which is about a part of set, says of member i, which is number rank of the part.
func (e *entry) estimate(p Place, set []Member, i int, part []Member, rank int) Estimate {
	m := &e.slow[rank]
	if len(part) == len(set) {
		return Estimate{Slow: m.mean, Source: Exact, Weight: m.weight, Error: m.err(), Last: e.last}
	}
	growth := prior(p.How, set, i) / prior(p.How, part, rank)
	return Estimate{Slow: m.mean * growth, Source: Subset, Weight: m.weight, Error: m.err() * growth, Last: e.last}
}

// Worst returns the largest slow-down measured in any set of n jobs in any place, 1 at least, or Generic(4) where none
// was and n > 1: what one epoch on trial may cost a resident.
func (h *History) Worst(n int) float64 {
	worst := 0.0
	for i := range h.list {
		if e := &h.list[i]; len(e.models) == n {
			worst = max(worst, e.worst)
		}
	}
	switch {
	case worst > 0:
		return max(worst, 1)
	case n <= 1:
		return 1
	}
	return max(Generic(n), Generic(4))
}

// Len returns the number of sets that are known.
func (h *History) Len() int { return len(h.list) }
