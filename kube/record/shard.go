package record

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// ShardNodes is how many nodes are kept together: an object for all of them would not fit the API beyond some 47,000
// GPUs, and would be written whole for each GPU that changes.
const ShardNodes = 64

// Head is what is kept of a cluster in addition to its nodes, which are in shards by their numbers. It is written after
// them: nodes that a shard has beyond Nodes are of a batch that was cut short, and join again.
type Head struct {
	Schema   int
	Origin   time.Time // that is time 0
	Types    []string  // names of GPU types by number
	Pools    []sched.Pool
	Nodes    int // in all shards
	PerShard int // nodes of each shard but the last
}

// Shard is some nodes that follow each other by number.
type Shard struct {
	Schema  int
	Shard   int    // its number
	Leader  int64  // who wrote it
	Version uint64 // events folded when it was written
	Nodes   []sched.Node
	GPUs    []GPU // of these nodes
	Lost    bool  `json:"-"` // it cannot be read, or not be believed: it has no nodes
}

// HeadOf returns the head of v, the time 0 of which was at origin, with shards of so many nodes.
func HeadOf(v *sched.View, origin time.Time, perShard int) Head {
	return Head{Schema: clusterSchema, Origin: origin.UTC(), Types: v.Types, Pools: v.Pools, Nodes: len(v.Nodes),
		PerShard: perShard}
}

// Shards returns how many shards there are.
func (h *Head) Shards() int { return (h.Nodes + h.PerShard - 1) / h.PerShard }

// ShardOf returns shard i of v, as a leader writes it; it shares v's slices.
func ShardOf(v *sched.View, i, perShard int, leader int64) Shard {
	s := Shard{Schema: clusterSchema, Shard: i, Leader: leader, Version: v.Version,
		Nodes: v.Nodes[i*perShard : min((i+1)*perShard, len(v.Nodes))]}
	for k := range s.Nodes {
		n := &s.Nodes[k]
		for g := n.First; g < n.First+sched.GPUID(n.Spec.GPUs); g++ {
			gpu := &v.GPUs[g]
			s.GPUs = append(s.GPUs, GPU{gpu.State, gpu.Quarantined, gpu.Blamed, gpu.Rests})
		}
	}
	return s
}

// Pack returns h as bytes, which ReadHead reads.
func (h *Head) Pack() ([]byte, error) { return pack(h) }

// Pack returns s as bytes, which ReadShard reads.
func (s *Shard) Pack() ([]byte, error) { return pack(s) }

// ReadHead reads what Pack of a Head wrote. Of a cluster that an earlier version wrote as a whole it returns that, and
// no head: both are nil where there is an error. Schemas that come after this one are ErrNewer.
func ReadHead(packed []byte) (*Head, *Cluster, error) {
	text, schema, err := unpack(packed, wholeSchema, clusterSchema)
	if err != nil {
		return nil, nil, err
	}
	if schema == wholeSchema {
		c := new(Cluster)
		if bad := strictly(text, c); bad != nil {
			return nil, nil, bad
		}
		return nil, c, nil
	}
	h := new(Head)
	if bad := strictly(text, h); bad != nil {
		return nil, nil, bad
	}
	if h.Nodes < 0 || h.PerShard < 1 || max(h.Nodes, h.PerShard) > mostNodes {
		return nil, nil, fmt.Errorf("record: cluster of %d nodes, %d of a shard, want 0 to %d and some", h.Nodes,
			h.PerShard, mostNodes)
	}
	return h, nil, nil
}

// mostNodes bounds what a head may say, since memory and reads follow from it.
const mostNodes = 1 << 20

// ReadShard reads what Pack of shard i wrote. Schemas that come after this one are ErrNewer.
func ReadShard(packed []byte, i int) (Shard, error) {
	var s Shard
	text, _, err := unpack(packed, clusterSchema, clusterSchema)
	if err != nil {
		return s, err
	}
	if bad := strictly(text, &s); bad != nil {
		return s, bad
	}
	if s.Shard != i {
		return s, fmt.Errorf("record: it is shard %d, want %d", s.Shard, i)
	}
	gpus := 0
	for k := range s.Nodes {
		if n := s.Nodes[k].Spec.GPUs; n < 1 || n > len(s.GPUs)-gpus {
			return s, fmt.Errorf("record: node %s has %d GPUs, of which %d are there", s.Nodes[k].Spec.Name, n,
				len(s.GPUs)-gpus)
		}
		gpus += s.Nodes[k].Spec.GPUs
	}
	if gpus != len(s.GPUs) {
		return s, fmt.Errorf("record: %d GPUs, %d of them of nodes", len(s.GPUs), gpus)
	}
	return s, nil
}

// errTwice says that a node is in two places.
var errTwice = errors.New("record: a node is there twice")

// Unfit is an error about shards of a cluster that do not go together.
type Unfit struct {
	Shards []int // their numbers
	Why    error
}

// Error says what is wrong.
func (u *Unfit) Error() string { return u.Why.Error() }

// Unwrap returns what is wrong.
func (u *Unfit) Unwrap() error { return u.Why }

// Join returns the cluster that all shards of a head make, in their order; version is that of the last complete batch.
// A batch that was cut short between two shards may have left a node that moved in both: it is where the newer one has
// it, that of the later leader or, of one leader, of the later version. What that changed is said in words. Otherwise a
// node that is up twice is an error, which is Unfit, as is a shard that has too few nodes. Where shards are lost, the
// nodes of the others have other numbers than before.
func (h *Head) Join(shards []Shard, version uint64) (c Cluster, mended []string, err error) {
	c = Cluster{Schema: wholeSchema, Origin: h.Origin, Types: h.Types, Pools: h.Pools}
	where := make(map[string]place)
	for i := range shards {
		s := &shards[i]
		if s.Lost {
			continue
		}
		want := min((i+1)*h.PerShard, h.Nodes) - i*h.PerShard
		if len(s.Nodes) < want {
			return c, nil, &Unfit{[]int{i}, fmt.Errorf("record: shard %d has %d nodes, want %d", i, len(s.Nodes), want)}
		}
		first := len(c.Nodes)
		c.Nodes = append(c.Nodes, s.Nodes[:want]...)
		for k := first; k < len(c.Nodes); k++ {
			n := &c.Nodes[k]
			if n.State == sched.NodeGone && n.Spec.Name == "" {
				continue
			}
			was, twice := where[n.Spec.Name]
			where[n.Spec.Name] = place{i, k}
			if !twice {
				continue
			}
			gone, bad := older(shards, c.Nodes, was, place{i, k}, version)
			if bad != nil {
				return c, nil, &Unfit{[]int{was.shard, i}, fmt.Errorf("%w: %s, in shards %d and %d", bad, n.Spec.Name,
					was.shard, i)}
			}
			mended = append(mended, fmt.Sprintf("node %s was in two places of the cluster", n.Spec.Name))
			if gone.node == k {
				where[n.Spec.Name] = was
			}
			c.Nodes[gone.node].State, c.Nodes[gone.node].Spec.Name = sched.NodeGone, ""
		}
		gpus := 0
		for k := range c.Nodes[first:] {
			gpus += c.Nodes[first+k].Spec.GPUs
		}
		c.GPUs = append(c.GPUs, s.GPUs[:gpus]...)
	}
	if slices.ContainsFunc(shards, func(s Shard) bool { return s.Lost }) {
		renumber(c.Nodes)
	}
	return c, mended, nil
}

// place is where a node is: in which shard, and at which number.
type place struct{ shard, node int }

// older returns which of two places of a node is to be given up: that of a node that is gone, which only kept its name
// in case it came back, else the one that a batch that was cut short had it leave. The error says that it was none.
func older(shards []Shard, nodes []sched.Node, a, b place, version uint64) (place, error) {
	x, y := &shards[a.shard], &shards[b.shard]
	order := cmp.Or(cmp.Compare(x.Leader, y.Leader), cmp.Compare(x.Version, y.Version))
	switch {
	case nodes[a.node].State == sched.NodeGone:
		return a, nil
	case nodes[b.node].State == sched.NodeGone:
		return b, nil
	case order == 0, x.Leader == y.Leader && max(x.Version, y.Version) <= version:
		return a, errTwice
	case order > 0:
		return b, nil
	}
	return a, nil
}

// renumber has the GPUs of nodes follow each other.
func renumber(nodes []sched.Node) {
	next := sched.GPUID(0)
	for i := range nodes {
		nodes[i].First = next
		next += sched.GPUID(nodes[i].Spec.GPUs)
	}
}

// pack returns v as JSON, compressed.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(v); err != nil {
		return nil, fmt.Errorf("record: cluster: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("record: cluster: %w", err)
	}
	return b.Bytes(), nil
}

// unpack returns the JSON that pack made, and its schema, which is one of those between oldest and newest.
func unpack(packed []byte, oldest, newest int) (text []byte, schema int, err error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, 0, fmt.Errorf("record: cluster: %w", err)
	}
	if text, err = io.ReadAll(io.LimitReader(z, maxCluster)); err != nil {
		return nil, 0, fmt.Errorf("record: cluster: %w", err)
	}
	if err = z.Close(); err != nil {
		return nil, 0, fmt.Errorf("record: cluster: %w", err)
	}
	var head struct{ Schema int }
	if json.Unmarshal(text, &head) == nil {
		if bad := checkSchema(head.Schema, oldest, newest); bad != nil {
			return nil, 0, fmt.Errorf("cluster: %w", bad)
		}
	}
	return text, head.Schema, nil
}

// strictly reads JSON into v, which has to know all that it has.
func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("record: cluster: %w", err)
	}
	return nil
}

// ShardsOf returns the numbers of the shards that nodes and GPUs are in, in order.
func ShardsOf(v *sched.View, perShard int, nodes []sched.NodeID, gpus []sched.GPUID) (list []int) {
	for _, g := range gpus {
		nodes = append(nodes, v.GPUs[g].Node)
	}
	for _, id := range nodes {
		list = append(list, int(id)/perShard)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
