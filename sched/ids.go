package sched

// JobID is the dense number of a job: 0, 1, 2, ... in the order in which arrivals were folded. It is never reused
// within a log; the name a submitter gave lives in JobSpec.Name and may repeat.
type JobID int32

// NodeID is the number of a node slot. A node that leaves and comes back under its name, or a rented node that
// takes the place of one that is gone, keeps the slot and raises Node.Generation.
type NodeID int32

// GPUID is the dense number of a GPU in the cluster; the GPUs of a node are consecutive, from Node.First.
type GPUID int32

// PoolID numbers the pools from which nodes are rented.
type PoolID int16

// TypeID numbers GPU types, at most MaxGPUTypes of them.
type TypeID uint8

// None marks the absence of a job, a node, a GPU or a pool.
const None = -1

// MaxGPUTypes is the number of distinct GPU types a cluster may have.
const MaxGPUTypes = 64

// TypeSet is a set of GPU types; the zero set means any type.
type TypeSet uint64

// Has reports whether type t is acceptable.
func (s TypeSet) Has(t TypeID) bool { return s == 0 || s>>t&1 == 1 }

// With returns s with t added.
func (s TypeSet) With(t TypeID) TypeSet { return s | 1<<t }

// Names gives strings dense numbers, from 1 in order of first use; the empty string is 0.
// The zero value is ready to use. The set only grows: limits belong to those who feed it.
type Names struct {
	ids  map[string]int32
	list []string
}

// ID returns the number of name, giving it the next one if it is new.
func (n *Names) ID(name string) int32 {
	if name == "" {
		return 0
	}
	if id, ok := n.ids[name]; ok {
		return id
	}
	if n.ids == nil {
		n.ids = make(map[string]int32)
	}
	n.list = append(n.list, name)
	id := int32(len(n.list))
	n.ids[name] = id
	return id
}

// Lookup returns the number of name and whether it has one.
func (n *Names) Lookup(name string) (int32, bool) {
	if name == "" {
		return 0, true
	}
	id, ok := n.ids[name]
	return id, ok
}

// Name returns the string numbered id, "" for 0.
func (n *Names) Name(id int32) string {
	if id == 0 {
		return ""
	}
	return n.list[id-1]
}

// Len returns how many names have a number.
func (n *Names) Len() int { return len(n.list) }
