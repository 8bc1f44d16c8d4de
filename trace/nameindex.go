package trace

import (
	"hash/maphash"
	"math/bits"
)

// nameIndex finds jobs of the same name. As long as each name is longer than the one before it, or as long and greater,
// as numbers that count up are, it only compares the two. From the first name that is not, it keeps an open-addressed
// table: a slot holds the high half of a name's hash and the number of its job plus one, 0 being free. Names are
// compared only where half a hash is equal, and are not looked at when the table grows. A map of strings takes several
// times longer.
type nameIndex struct {
	seed   maphash.Seed
	slots  []uint64 // length is a power of two, at least 4/3 of the number of jobs
	rising bool     // no table yet
}

func newNameIndex() nameIndex { return nameIndex{seed: maphash.MakeSeed(), rising: true} }

// add enters the last of jobs, all others having been entered, and returns the number of an earlier job of the same
// name, or -1.
func (x *nameIndex) add(jobs []Job) int {
	i := len(jobs) - 1
	if x.rising {
		if i == 0 || rises(jobs[i-1].Spec.Name, jobs[i].Spec.Name) {
			return -1
		}
		x.rising = false
		x.slots = make([]uint64, 1<<bits.Len(uint(2*cap(jobs)+8)))
		for k := range i {
			x.enter(jobs, k)
		}
	}
	if len(jobs) > len(x.slots)/4*3 {
		x.grow()
	}
	return x.enter(jobs, i)
}

func rises(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// enter puts job i into the table unless one of its name is there, whose number it returns, else -1.
func (x *nameIndex) enter(jobs []Job, i int) int {
	hash := maphash.String(x.seed, jobs[i].Spec.Name)
	for at := x.home(hash); ; at = x.after(at) {
		slot := x.slots[at]
		if slot == 0 {
			x.slots[at] = hash>>32<<32 | uint64(i+1)
			return -1
		}
		if j := int(uint32(slot)) - 1; slot>>32 == hash>>32 && jobs[j].Spec.Name == jobs[i].Spec.Name {
			return j
		}
	}
}

// home is the slot where the search for a hash starts; it depends on the half that slots keep.
func (x *nameIndex) home(hash uint64) int { return int(hash>>32) & (len(x.slots) - 1) }

func (x *nameIndex) after(at int) int { return (at + 1) & (len(x.slots) - 1) }

func (x *nameIndex) grow() {
	old := x.slots
	x.slots = make([]uint64, 2*len(old))
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := x.home(slot)
		for x.slots[at] != 0 {
			at = x.after(at)
		}
		x.slots[at] = slot
	}
}
