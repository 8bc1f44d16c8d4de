package cluster

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/docexample"
	"github.com/trainyard/trainyard/sched"
)

// FuzzParse checks that no input makes Parse panic, that an error is one line with a position, and that a cluster that
// was read is what its documentation says.
func FuzzParse(f *testing.F) {
	f.Add(docexample.Of(f))
	f.Add("nodes: [{gpus: 4}]")
	f.Add("pools: [{name: a, gpus: 4, max: 3, boot_seconds: 9}, {name: b, gpus: 1, type: x, min: 1, max: 1}]")
	f.Add("nodes:\n  - count: 5\n    gpus: 2\n    racks: 2\n    power: {idle_w: 1e2}\nfailures: {node_mtbf_hours: " +
		"0.5, repair_hours: 0}\n")
	f.Add("nodes: [{gpus: 4, power: {curve: {0: 650, 0.5: 900, 1: 900}, wake_seconds: 3}}, {gpus: 1, power: {curve: " +
		"{idle: 1, scale: 2, exponent: 1}}}]")
	f.Add("a: &a [*a, !!x 'y', \"\\u0041\"]\n? b\n: |\n  c\n---\n<<: {}\n")
	f.Add("\ufeffnodes:\r\n\t- {gpus: 0x1, gpus: .inf, b}\r# c")
	f.Fuzz(func(t *testing.T, src string) {
		c, err := Parse([]byte(src), "f")
		if err != nil {
			if msg := err.Error(); !strings.HasPrefix(msg, "cluster: f:") || !strings.Contains(msg, ", want ") ||
				strings.Contains(msg, "\n") {
				t.Fatalf("error %q", msg)
			}
			return
		}
		if err := check(c); err != "" {
			t.Fatal(err)
		}
	})
}

// check returns what is wrong with c, or "".
func check(c *Cluster) string {
	names := make(map[string]bool)
	types, racks := make([]bool, len(c.Types)), make([]bool, len(c.Racks))
	racks[0] = true
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.Validate() != nil:
			return n.Name + ": " + n.Validate().Error()
		case n.Name == "" || names[n.Name]:
			return "name " + n.Name
		case n.Pool != sched.None || int(n.Type) >= len(types) || int(n.Rack) >= len(racks):
			return n.Name + ": pool, type or rack"
		}
		names[n.Name], types[n.Type], racks[n.Rack] = true, true, true
	}
	names = make(map[string]bool)
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Validate() != nil || p.Name == "" || names[p.Name] || int(p.Type) >= len(types) || p.Node.GPUs != p.GPUs ||
			p.Node.Type != p.Type {
			return "pool " + p.Name
		}
		names[p.Name], types[p.Type] = true, true
	}
	for _, used := range append(types, racks...) {
		if !used {
			return "a type or rack that no node has"
		}
	}
	switch n := c.MostGPUs(); {
	case n < 1 || n > MaxGPUs || len(c.Types) > sched.MaxGPUTypes:
		return "too few or too many"
	case c.Failures.MTBF < 0 || c.Failures.Repair < 0:
		return "failures"
	}
	return ""
}
