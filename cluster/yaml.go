package cluster

import (
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Parse reads a YAML description, see the package comment. name is the file's and stands in errors, all of which have
// the form "cluster: FILE:LINE:COLUMN: what is wrong, what is wanted"; its last element is the cluster's name unless
// the description gives one.
func Parse(yaml []byte, name string) (*Cluster, error) {
	r := &reader{&strictyaml.Reader{Prefix: "cluster", File: name}}
	doc := r.Document(yaml, maxFile, "nodes")
	c := &Cluster{}
	if r.Err() == nil {
		c = r.cluster(doc)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// reader reads one description.
type reader struct{ *strictyaml.Reader }

func (r *reader) cluster(doc ast.Node) *Cluster {
	var b builder
	var fail Failures
	name, nodes, pools := filepath.Base(r.File), ast.Node(nil), ast.Node(nil)
	r.Mapping(doc, "the document", []strictyaml.Field{
		strictyaml.Key("name", strictyaml.Text(r.Reader, &name)),
		strictyaml.Key("nodes", func(key string, n ast.Node) {
			nodes = n
			r.list(key, n, func(item ast.Node) { r.node(item, &b) })
		}),
		strictyaml.Key("pools", func(key string, n ast.Node) {
			pools = n
			r.list(key, n, func(item ast.Node) { r.pool(item, &b) })
		}),
		strictyaml.Key("failures", func(_ string, n ast.Node) { fail = r.failures(n) }),
	})
	if nodes == nil && pools == nil {
		r.Fail(doc, "no nodes and no pools, want a list of at least one")
	}
	c := b.cluster(name)
	c.Failures = fail
	return c
}

// list reads a list of at least one, item by item.
func (r *reader) list(key string, n ast.Node, read func(item ast.Node)) {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) == 0 {
		r.Fail(n, "%s, want a list of at least one", strictyaml.Describe(key, n))
		return
	}
	for _, item := range list.Values {
		if read(item); r.Err() != nil {
			return
		}
	}
}

func (r *reader) node(n ast.Node, b *builder) {
	e := newEntry()
	r.Mapping(n, "a node", append([]strictyaml.Field{
		strictyaml.Key("count", strictyaml.Whole(r.Reader, &e.count, 1, MaxGPUs)),
		strictyaml.Key("rack", strictyaml.Text(r.Reader, &e.rack)),
		strictyaml.Key("racks", strictyaml.Whole(r.Reader, &e.racks, 1, MaxGPUs)),
	}, r.machine(&e)...))
	switch {
	case e.spec.GPUs == 0:
		r.Fail(n, "a node without gpus, want a whole number from 1 to %d", MaxGPUs)
	case e.rack != "" && e.racks != 0:
		r.Fail(n, "both rack and racks, want one of them")
	case e.racks > e.count:
		r.Fail(n, "racks %d for %s, want at most as many", e.racks, count(e.count, "node"))
	}
	if r.Err() != nil {
		return
	}
	if err := b.add(&e); err != nil {
		r.Fail(n, "%v", err)
	}
}

// machine returns the keys that say what a node is like.
func (r *reader) machine(e *entry) []strictyaml.Field {
	return []strictyaml.Field{
		strictyaml.Key("gpus", strictyaml.Whole(r.Reader, &e.spec.GPUs, 1, MaxGPUs)),
		strictyaml.Key("type", strictyaml.Text(r.Reader, &e.typ)),
		strictyaml.Key("name", strictyaml.Text(r.Reader, &e.name)),
		strictyaml.Key("cpus", strictyaml.Figure(r.Reader, &e.spec.CPUs)),
		strictyaml.Key("memory_gb", strictyaml.Figure(r.Reader, &e.spec.MemoryGB)),
		strictyaml.Key("gpu_memory_gb", strictyaml.Figure(r.Reader, &e.spec.GPUMemGB)),
		strictyaml.Key("sharing", func(key string, n ast.Node) { r.sharing(key, n, &e.spec.Sharing) }),
		strictyaml.Key("power", func(_ string, n ast.Node) { r.power(n, &e.spec) }),
		strictyaml.Key("price_per_hour", strictyaml.Figure(r.Reader, &e.spec.DollarsHr)),
	}
}

// sharing reads how jobs share GPUs.
func (r *reader) sharing(key string, n ast.Node, dst *sched.Mechanism) {
	word := ""
	strictyaml.Text(r.Reader, &word)(key, n)
	if r.Err() != nil {
		return
	}
	words := sched.MechanismWords()
	i := slices.Index(words, word)
	if i < 0 {
		r.Fail(n, "%s, want one of %s", strictyaml.Describe(key, n), strings.Join(words, ", "))
		return
	}
	*dst = sched.Mechanism(i)
}

func (r *reader) pool(n ast.Node, b *builder) {
	e := newEntry()
	boot, billing, most, least := 0.0, 0.0, 0, 0
	r.Mapping(n, "a pool", append([]strictyaml.Field{
		strictyaml.Key("boot_seconds", strictyaml.Figure(r.Reader, &boot)),
		strictyaml.Key("billing_seconds", strictyaml.Figure(r.Reader, &billing)),
		strictyaml.Key("min", strictyaml.Whole(r.Reader, &least, 0, MaxGPUs)),
		strictyaml.Key("max", strictyaml.Whole(r.Reader, &most, 1, MaxGPUs)),
	}, r.machine(&e)...))
	switch {
	case e.name == "":
		r.Fail(n, "a pool without a name, want one")
	case e.spec.GPUs == 0:
		r.Fail(n, "a pool without gpus, want a whole number from 1 to %d", MaxGPUs)
	case most == 0:
		r.Fail(n, "a pool without max, want the number of nodes that may be rented at most")
	}
	if r.Err() != nil {
		return
	}
	p := sched.PoolSpec{Boot: sched.Seconds(boot), Billing: sched.Seconds(billing), Min: int32(least), Max: int32(most)}
	if err := b.addPool(&e, p); err != nil {
		r.Fail(n, "%v", err)
	}
}

// failures reads both times in hours, and requires both: an outage that was never given a length is a mistake.
func (r *reader) failures(n ast.Node) Failures {
	mtbf, repair, seed := math.NaN(), math.NaN(), 1
	r.Mapping(n, "failures", []strictyaml.Field{
		strictyaml.Key("node_mtbf_hours", hours(r, &mtbf)),
		strictyaml.Key("repair_hours", hours(r, &repair)),
		strictyaml.Key("seed", strictyaml.Whole(r.Reader, &seed, 0, math.MaxInt)),
	})
	if math.IsNaN(mtbf) {
		r.Fail(n, "failures without node_mtbf_hours, want %s", hoursWanted)
	}
	if math.IsNaN(repair) {
		r.Fail(n, "failures without repair_hours, want %s", hoursWanted)
	}
	if r.Err() != nil {
		return Failures{}
	}
	return Failures{MTBF: sched.Seconds(mtbf * 3600), Repair: sched.Seconds(repair * 3600), Seed: uint64(seed)}
}

// maxHours bounds times; minHours keeps a mean time between failures from swamping a run.
const (
	maxHours    = 1e6
	minHours    = 0.001
	hoursWanted = "0, or a number from 0.001 to 1e6"
)

// hours reads 0 or a number from minHours to maxHours.
func hours(r *reader, dst *float64) func(string, ast.Node) {
	return func(key string, n ast.Node) {
		x, ok := strictyaml.Decimal(n)
		if !ok || x != 0 && x < minHours || x > maxHours {
			r.Fail(n, "%s, want %s", strictyaml.Describe(key, n), hoursWanted)
			return
		}
		*dst = x
	}
}
