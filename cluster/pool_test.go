package cluster

import (
	"testing"
	"time"
)

// Ensure that a cluster to be rented has a pool for each kind of node, as large as there are nodes of it, and that one
// with pools stays as it is.
func TestToRent(t *testing.T) {
	c, err := Load("3x4:t4+2x8:a100")
	if err != nil {
		t.Fatal(err)
	}
	r := c.ToRent(time.Minute)
	if len(r.Nodes) != 0 || len(r.Pools) != 2 || len(c.Nodes) != 5 || r.MostGPUs() != c.GPUs() {
		t.Fatalf("%+v", r)
	}
	for i, want := range []struct{ gpus, nodes int }{{4, 3}, {8, 2}} {
		if p := r.Pools[i]; p.GPUs != want.gpus || p.Max != int32(want.nodes) || p.Boot != time.Minute ||
			int(p.Type) != i || p.Validate() != nil {
			t.Errorf("%+v, want %d nodes of %d GPUs", p, want.nodes, want.gpus)
		}
	}
	if r.ToRent(time.Hour) != r {
		t.Error("a cluster with pools is changed")
	}
}
