package record

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Schemas of what is kept of a cluster. It is raised when that is written otherwise than before.
const (
	clusterSchema = 2 // a head, and nodes in shards
	wholeSchema   = 1 // all in one
)

// Cluster is all of a View but its jobs.
type Cluster struct {
	Schema int
	Origin time.Time // that is time 0; zero where it was written by those who kept it in the policy alone
	Types  []string  // names of GPU types by number
	Nodes  []sched.Node
	GPUs   []GPU
	Pools  []sched.Pool
}

// GPU is what cannot be counted again of a GPU.
type GPU struct {
	State       sched.GPUState
	Quarantined bool
	Blamed      uint8
	Rests       sched.Time `json:",omitempty"`
}

// ClusterOf returns the cluster of v, the time 0 of which was at origin; it shares v's slices.
func ClusterOf(v *sched.View, origin time.Time) Cluster {
	c := Cluster{Schema: wholeSchema, Origin: origin.UTC(), Types: v.Types, Nodes: v.Nodes, Pools: v.Pools,
		GPUs: make([]GPU, len(v.GPUs))}
	for i := range v.GPUs {
		g := &v.GPUs[i]
		c.GPUs[i] = GPU{g.State, g.Quarantined, g.Blamed, g.Rests}
	}
	return c
}

// Pack returns c as bytes, which ReadHead reads: JSON, compressed, as a node with eight GPUs takes a kilobyte of it. It
// is how versions before shards knew a cluster.
func (c *Cluster) Pack() ([]byte, error) { return pack(c) }

// maxCluster bounds what is unpacked: some hundred thousand GPUs.
const maxCluster = 256 << 20
