package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// clusterSchema is raised when a Cluster is written otherwise than before.
const clusterSchema = 1

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
	c := Cluster{Schema: clusterSchema, Origin: origin.UTC(), Types: v.Types, Nodes: v.Nodes, Pools: v.Pools,
		GPUs: make([]GPU, len(v.GPUs))}
	for i := range v.GPUs {
		g := &v.GPUs[i]
		c.GPUs[i] = GPU{g.State, g.Quarantined, g.Blamed, g.Rests}
	}
	return c
}

// Pack returns c as bytes, which Unpack reads: JSON, compressed, as a node with eight GPUs takes a kilobyte of it.
func (c *Cluster) Pack() ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := json.NewEncoder(z).Encode(c); err != nil {
		return nil, fmt.Errorf("record: cluster: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("record: cluster: %w", err)
	}
	return b.Bytes(), nil
}

// maxCluster bounds what Unpack reads: some hundred thousand GPUs.
const maxCluster = 256 << 20

// Unpack reads what Pack wrote.
func Unpack(packed []byte) (Cluster, error) {
	var c Cluster
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return c, fmt.Errorf("record: cluster: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxCluster))
	if err != nil {
		return c, fmt.Errorf("record: cluster: %w", err)
	}
	var head struct{ Schema int }
	if json.Unmarshal(text, &head) == nil {
		if bad := checkSchema(head.Schema, clusterSchema, clusterSchema); bad != nil {
			return c, fmt.Errorf("cluster: %w", bad)
		}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("record: cluster: %w", err)
	}
	return c, z.Close()
}
