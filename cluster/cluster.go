package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// MaxGPUs is the number of GPUs that a described cluster may have in total.
const MaxGPUs = 1_000_000

// maxFile is the size in bytes up to which a file is read.
const maxFile = 1 << 20

// request is what Load takes.
const wanted = "want NODESxGPUS such as 15x4 or 15x4:v100, or a YAML file"

// Cluster is what a simulated or described cluster consists of. No one changes it after it was read.
type Cluster struct {
	Name  string           // the shorthand, the name given in the file, or the name of the file
	Nodes []sched.NodeSpec // in slot order, with Pool None; their names are distinct, their specs valid
	// Types[i] is the name of GPU type sched.TypeID(i); in order of first use, all of them in use
	Types    []string
	Racks    []string // Racks[i] is the name of rack i of NodeSpec.Rack; Racks[0] is "", the unknown rack
	Pools    []Pool   // what may be rented, by PoolID; their names are distinct
	Failures Failures // zero when nodes never fail

	short bool // Name says all
}

// Pool is what may be rented, and what a rented node is like.
type Pool struct {
	sched.PoolSpec
	Node sched.NodeSpec // without Name and Pool
}

// PoolSpecs returns what a log starts with.
func (c *Cluster) PoolSpecs() []sched.PoolSpec {
	var list []sched.PoolSpec
	for i := range c.Pools {
		list = append(list, c.Pools[i].PoolSpec)
	}
	return list
}

// ToRent returns c with all its nodes to be rented instead of owned: a pool for each kind of node, named after the
// first, up to as many nodes as there are, that boot in the given time. A cluster that has pools already is returned as
// it is.
func (c *Cluster) ToRent(boot time.Duration) *Cluster {
	if len(c.Pools) > 0 {
		return c
	}
	r := *c
	r.Nodes = nil
	for i := range c.Nodes {
		kind := c.Nodes[i]
		kind.Name, kind.Rack = "", 0
		at := slices.IndexFunc(r.Pools, func(p Pool) bool { return reflect.DeepEqual(p.Node, kind) })
		if at < 0 {
			at = len(r.Pools)
			r.Pools = append(r.Pools,
				Pool{Node: kind, PoolSpec: sched.PoolSpec{Name: c.Nodes[i].Name, Type: kind.Type, GPUs: kind.GPUs,
					Price: kind.DollarsHr, Boot: boot}})
		}
		r.Pools[at].Max++
	}
	return &r
}

// MostGPUs returns the number of GPUs of all nodes there are and all that may be rented.
func (c *Cluster) MostGPUs() int {
	n := c.GPUs()
	for i := range c.Pools {
		n += int(c.Pools[i].Max) * c.Pools[i].GPUs
	}
	return n
}

// GPUs returns the number of GPUs of all nodes.
func (c *Cluster) GPUs() int {
	n := 0
	for i := range c.Nodes {
		n += c.Nodes[i].GPUs
	}
	return n
}

// String returns a short description: a shorthand as it was given, as in 15x4:v100, otherwise the name and the size,
// as in "mixed.yaml (20 nodes, 112 GPUs)".
func (c *Cluster) String() string {
	if c.short {
		return c.Name
	}
	size := fmt.Sprintf("%s, %s", count(len(c.Nodes), "node"), count(c.GPUs(), "GPU"))
	if len(c.Pools) > 0 {
		size += fmt.Sprintf(", up to %d with rented ones", c.MostGPUs())
	}
	return fmt.Sprintf("%s (%s)", c.Name, size)
}

// count returns "1 node" or "2 nodes".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Load reads spec: a shorthand, or else the path of a YAML file, which Parse describes. What looks like a shorthand is
// one; a file of such a name is reached as ./15x4. A file that cannot be read gives an error that wraps the reason,
// such as fs.ErrNotExist.
func Load(spec string) (*Cluster, error) {
	if IsShorthand(spec) {
		return parseShorthand(spec)
	}
	text, err := strictyaml.ReadFile(spec, maxFile)
	switch {
	case err == nil:
		return Parse(text, spec)
	case errors.Is(err, fs.ErrNotExist) && !isPath(spec):
		return nil, fmt.Errorf("cluster: %q: %s", spec, wanted)
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err
	}
	return nil, fmt.Errorf("cluster: %s: %w, %s", spec, err, wanted)
}

// isPath reports whether spec can only have been meant as a path.
func isPath(spec string) bool {
	ext := strings.ToLower(filepath.Ext(spec))
	return strings.ContainsRune(spec, filepath.Separator) || ext == ".yaml" || ext == ".yml"
}
