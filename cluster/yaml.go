package cluster

import (
	"math"
	"path/filepath"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/sched"
)

// Parse reads a YAML description, see the package comment. name is the file's and stands in errors, all of which have
// the form "cluster: FILE:LINE:COLUMN: what, want wish"; its last element is the cluster's name unless the description
// gives one.
func Parse(yaml []byte, name string) (*Cluster, error) {
	r := &reader{file: name}
	doc := r.document(yaml)
	c := &Cluster{}
	if r.err == nil {
		c = r.cluster(doc)
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

func (r *reader) cluster(doc ast.Node) *Cluster {
	var b builder
	var fail Failures
	name, nodes := filepath.Base(r.file), ast.Node(nil)
	r.mapping(doc, "the document", []field{
		{"name", text(r, &name)},
		{"nodes", func(key string, n ast.Node) { nodes = n; r.nodes(key, n, &b) }},
		{"failures", func(_ string, n ast.Node) { fail = r.failures(n) }},
	})
	if nodes == nil {
		r.fail(doc, "no nodes, want a list of at least one")
	}
	c := b.cluster(name)
	c.Failures = fail
	return c
}

func (r *reader) nodes(key string, n ast.Node, b *builder) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.fail(n, "%s, want a list of at least one", describe(key, n))
		return
	}
	for _, item := range list.Values {
		e := r.entry(item)
		if r.err != nil {
			return
		}
		if err := b.add(&e); err != nil {
			r.fail(item, "%v", err)
		}
	}
}

func (r *reader) entry(n ast.Node) entry {
	e := newEntry()
	r.mapping(n, "a node", []field{
		{"count", whole(r, &e.count, 1, MaxGPUs)},
		{"gpus", whole(r, &e.spec.GPUs, 1, MaxGPUs)},
		{"type", text(r, &e.typ)},
		{"name", text(r, &e.name)},
		{"rack", text(r, &e.rack)},
		{"racks", whole(r, &e.racks, 1, MaxGPUs)},
		{"cpus", figure(r, &e.spec.CPUs)},
		{"memory_gb", figure(r, &e.spec.MemoryGB)},
		{"gpu_memory_gb", figure(r, &e.spec.GPUMemGB)},
		{"power", func(_ string, n ast.Node) { r.power(n, &e.spec) }},
		{"price_per_hour", figure(r, &e.spec.DollarsHr)},
	})
	switch {
	case e.spec.GPUs == 0:
		r.fail(n, "a node without gpus, want a whole number from 1 to %d", MaxGPUs)
	case e.rack != "" && e.racks != 0:
		r.fail(n, "both rack and racks, want one of them")
	case e.racks > e.count:
		r.fail(n, "racks %d for %s, want at most as many", e.racks, count(e.count, "node"))
	}
	return e
}

func (r *reader) power(n ast.Node, spec *sched.NodeSpec) {
	r.mapping(n, "power", []field{
		{"idle_w", figure(r, &spec.IdleW)},
		{"busy_gpu_w", figure(r, &spec.BusyGPUW)},
		{"sleep_w", figure(r, &spec.SleepW)},
	})
}

// failures reads both times in hours, and requires both: an outage that was never given a length is a mistake.
func (r *reader) failures(n ast.Node) Failures {
	mtbf, repair, seed := math.NaN(), math.NaN(), 1
	r.mapping(n, "failures", []field{
		{"node_mtbf_hours", hours(r, &mtbf)},
		{"repair_hours", hours(r, &repair)},
		{"seed", whole(r, &seed, 0, math.MaxInt)},
	})
	if math.IsNaN(mtbf) {
		r.fail(n, "failures without node_mtbf_hours, want %s", hoursWish)
	}
	if math.IsNaN(repair) {
		r.fail(n, "failures without repair_hours, want %s", hoursWish)
	}
	if r.err != nil {
		return Failures{}
	}
	return Failures{MTBF: sched.Seconds(mtbf * 3600), Repair: sched.Seconds(repair * 3600), Seed: uint64(seed)}
}
