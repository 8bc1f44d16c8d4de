package cluster

import (
	"fmt"
	"strconv"

	"github.com/trainyard/trainyard/sched"
)

// entry is a group of nodes alike, as an item of a description gives them.
type entry struct {
	count int
	spec  sched.NodeSpec // without Name, Type and Rack
	typ   string
	name  string // "" = numbered through the description
	rack  string // "" = unknown, or see racks
	racks int    // > 0: spread over so many
}

// newEntry returns an entry with the documented defaults.
func newEntry() entry {
	return entry{count: 1, typ: "gpu", spec: sched.NodeSpec{Pool: sched.None}}
}

// builder puts a cluster together, entry by entry.
type builder struct {
	nodes   []sched.NodeSpec
	gpus    int
	types   sched.Names // TypeID i has number i+1
	racks   sched.Names // numbered as NodeSpec.Rack
	made    int         // racks made by entries that spread
	isMade  map[string]bool
	unnamed int // nodes named by default
	pools   []Pool
	seen    map[string]bool
}

// typeNumber returns the number of the GPU type called name.
func (b *builder) typeNumber(name string) (sched.TypeID, error) {
	if _, ok := b.types.Lookup(name); !ok && b.types.Len() == sched.MaxGPUTypes {
		return 0, fmt.Errorf("type %q is one more, want at most %d types", name, sched.MaxGPUTypes)
	}
	return sched.TypeID(b.types.ID(name) - 1), nil
}

// addPool appends the pool whose nodes are those of e, or returns what is wrong with it.
func (b *builder) addPool(e *entry, p sched.PoolSpec) (err error) {
	if total := int64(b.gpus) + int64(p.Max)*int64(e.spec.GPUs); total > MaxGPUs {
		return fmt.Errorf("%d GPUs in total, want at most %d", total, MaxGPUs)
	}
	if e.spec.Type, err = b.typeNumber(e.typ); err != nil {
		return err
	}
	for i := range b.pools {
		if b.pools[i].Name == e.name {
			return fmt.Errorf("pool name %q given twice, want names of their own", e.name)
		}
	}
	p.Name, p.Type, p.GPUs, p.Price = e.name, e.spec.Type, e.spec.GPUs, e.spec.DollarsHr
	if err := p.Validate(); err != nil {
		return err
	}
	b.gpus += int(p.Max) * p.GPUs
	b.pools = append(b.pools, Pool{PoolSpec: p, Node: e.spec})
	return nil
}

// add appends the nodes of e, or returns what is wrong with it. Counts and figures of e are in range.
func (b *builder) add(e *entry) error {
	if total := int64(b.gpus) + int64(e.count)*int64(e.spec.GPUs); total > MaxGPUs {
		return fmt.Errorf("%d GPUs in total, want at most %d", total, MaxGPUs)
	}
	typ, err := b.typeNumber(e.typ)
	if err != nil {
		return err
	}
	racks, err := b.rackNumbers(e)
	if err != nil {
		return err
	}
	spec := e.spec
	spec.Type = typ
	for i := range e.count {
		spec.Name = b.nodeName(e, i)
		if b.seen[spec.Name] {
			return fmt.Errorf("node name %q given twice, want names of their own", spec.Name)
		}
		if b.seen == nil {
			b.seen = make(map[string]bool)
		}
		b.seen[spec.Name] = true
		spec.Rack = racks[i*len(racks)/e.count]
		b.nodes = append(b.nodes, spec)
	}
	b.gpus += e.count * spec.GPUs
	return nil
}

// nodeName returns the name of node i of e.
func (b *builder) nodeName(e *entry, i int) string {
	switch {
	case e.name == "":
		b.unnamed++
		return "node" + strconv.Itoa(b.unnamed-1)
	case e.count == 1:
		return e.name
	}
	return e.name + strconv.Itoa(i)
}

// rackNumbers returns the racks of e, never none. Racks that are made never join racks that are named.
func (b *builder) rackNumbers(e *entry) ([]int32, error) {
	if e.racks == 0 {
		if b.isMade[e.rack] {
			return nil, fmt.Errorf("rack %q was made by racks of another entry, want another name", e.rack)
		}
		return []int32{b.racks.ID(e.rack)}, nil
	}
	if b.isMade == nil {
		b.isMade = make(map[string]bool)
	}
	var list []int32
	for range e.racks {
		name := "rack" + strconv.Itoa(b.made)
		if _, ok := b.racks.Lookup(name); ok {
			return nil, fmt.Errorf("racks makes rack %q, which another entry names, want another name there", name)
		}
		b.made++
		b.isMade[name] = true
		list = append(list, b.racks.ID(name))
	}
	return list, nil
}

// cluster returns what was added.
func (b *builder) cluster(name string) *Cluster {
	c := &Cluster{Name: name, Nodes: b.nodes, Pools: b.pools, Racks: []string{""}}
	for i := range b.types.Len() {
		c.Types = append(c.Types, b.types.Name(int32(i+1)))
	}
	for i := range b.racks.Len() {
		c.Racks = append(c.Racks, b.racks.Name(int32(i+1)))
	}
	return c
}
