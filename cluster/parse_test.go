package cluster

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/internal/docexample"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the example of the package comment means what its comments say.
func TestDocExample(t *testing.T) {
	c, err := Parse([]byte(docexample.Of(t)), "some/lab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.String(), "lab (18 nodes, 84 GPUs, up to 164 with rented ones)"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	first := sched.NodeSpec{Name: "n0", GPUs: 4, Rack: 1, Pool: sched.None, CPUs: 32, MemoryGB: 256, GPUMemGB: 16,
		Sharing: sched.MPS,
		IdleW:   650, BusyGPUW: 160, Wake: 30 * time.Second, DollarsHr: 3.9}
	last := sched.NodeSpec{Name: "big", GPUs: 8, Type: 1, Rack: 4, Pool: sched.None, IdleW: 900, BusyGPUW: 350}
	curves := []sched.PowerCurve{{Scale: 1310.9, Exponent: 1.55},
		{Points: []sched.PowerPoint{{Use: 0, Watts: 650}, {Use: .5, Watts: 1550}, {Use: 1, Watts: 1960}}}}
	for i, idle := range []sched.Watts{650.4, 650} {
		if n := c.Nodes[16+i]; n.IdleW != idle || !reflect.DeepEqual(n.Curve, curves[i]) {
			t.Errorf("node %+v, want idle %v W and %+v", n, idle, curves[i])
		}
	}
	if !reflect.DeepEqual(c.Nodes[0], first) || !reflect.DeepEqual(c.Nodes[15], last) {
		t.Errorf("nodes\n%+v\n%+v, want\n%+v\n%+v", c.Nodes[0], c.Nodes[15], first, last)
	}
	if !slices.Equal(c.Types, []string{"v100", "a100"}) ||
		!slices.Equal(c.Racks, []string{"", "rack0", "rack1", "rack2", "r1"}) {
		t.Errorf("types %q, racks %q", c.Types, c.Racks)
	}
	pool := Pool{PoolSpec: sched.PoolSpec{Name: "spot", GPUs: 4, Price: 3.9, Boot: 2 * time.Minute,
		Billing: time.Minute, Max: 20},
		Node: sched.NodeSpec{GPUs: 4, Pool: sched.None, DollarsHr: 3.9}}
	if len(c.Pools) != 1 || !reflect.DeepEqual(c.Pools[0], pool) {
		t.Errorf("pools\n%+v, want\n%+v", c.Pools, pool)
	}
	if want := (Failures{720 * time.Hour, 4 * time.Hour, 7}); c.Failures != want {
		t.Errorf("failures %+v, want %+v", c.Failures, want)
	}
}

// Ensure that what may be left out has the documented default, and that nodes lie in equal blocks in racks.
func TestDefaults(t *testing.T) {
	c, err := Parse([]byte("nodes: [{gpus: 1}, {gpus: 2, count: 5, racks: 2, cpus: 1e1}, {gpus: 3, name: x}]"),
		"dir/f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range c.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", n.GPUs, " ", c.Types[n.Type], " ", c.Racks[n.Rack], " ", n.CPUs))
	}
	want := []string{"node0 1 gpu  0", "node1 2 gpu rack0 10", "node2 2 gpu rack0 10", "node3 2 gpu rack0 10",
		"node4 2 gpu rack1 10",
		"node5 2 gpu rack1 10", "x 3 gpu  0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c.Name != "f.yaml" || c.String() != "f.yaml (7 nodes, 14 GPUs)" || c.Failures != (Failures{}) {
		t.Errorf("name %q, string %q, failures %+v", c.Name, c, c.Failures)
	}
}

// Ensure that a file saved by another editor reads the same: byte order mark, CRLF, a marked document.
func TestDialects(t *testing.T) {
	for _, src := range []string{"nodes:\n- gpus: 4\n", "\ufeffnodes:\r\n- gpus: 4\r\n",
		"---\nnodes: [{gpus: 4}]\n...\n", "# c\n\nnodes:\n\n  # c\n  -\n    gpus: 4 # c"} {
		if c, err := Parse([]byte(src), "f"); err != nil || c.GPUs() != 4 {
			t.Errorf("%q: %v", src, err)
		}
	}
}

// nodeKeys are the keys of a node as an error lists them.
const nodeKeys = "count, rack, racks, gpus, type, name, cpus, memory_gb, gpu_memory_gb, sharing, power, price_per_hour"

// Ensure that whatever is wrong is said with its position and what is wanted.
func TestErrors(t *testing.T) {
	types := func(n int) string {
		var b strings.Builder
		b.WriteString("nodes:\n")
		for i := range n {
			fmt.Fprintf(&b, "  - {gpus: 1, type: t%d}\n", i)
		}
		return b.String()
	}
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	}
	if _, err := Parse([]byte(types(sched.MaxGPUTypes)), "f"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ src, want string }{
		// Keys.
		{"pools: [{gpus: 4, max: 2}]", `1:9: a pool without a name, want one`},
		{"pools: [{name: a, max: 2}]", `1:9: a pool without gpus, want a whole number from 1 to 1000000`},
		{"pools: [{name: a, gpus: 4}]", `1:9: a pool without max, want the number of nodes that may be rented at most`},
		{"pools: [{name: a, gpus: 4, min: 3, max: 2}]", `1:9: nodes 3..2, want 0 <= min <= max`},
		{"pools:\n- {name: a, gpus: 4, max: 2}\n- {name: a, gpus: 1, max: 2}",
			`3:3: pool name "a" given twice, want names of their own`},
		{"pools: [{name: a, gpus: 4, max: 2, boot_seconds: 1e12}]",
			`1:50: boot_seconds 1e12, want a number from 0 to 1e9`},
		{"node: []", `1:1: unknown key "node" (did you mean "nodes"?), want one of name, nodes, pools, failures`},
		{"nodes:\n  - gpu: 4", `2:5: unknown key "gpu" (did you mean "gpus"?), want one of ` + nodeKeys},
		{"nodes:\n  - gpus: 4\n    pm_scores: a.csv", `3:5: unknown key "pm_scores", want one of ` + nodeKeys},
		{"nodes:\n  - gpus: 4\n    power: {idle_w: 1, idl_w: 2}",
			`3:24: unknown key "idl_w" (did you mean "idle_w"?), want one of idle_w, busy_gpu_w, sleep_w, curve, ` +
				`wake_seconds`},
		{"nodes:\n  - gpus: 4\nfailures:\n  mtbf: 3",
			`4:3: unknown key "mtbf", want one of node_mtbf_hours, repair_hours, seed`},
		{"nodes:\n  - gpus: 4\n    count: 1\n    gpus: 4", `4:5: gpus given again, want it once (first on line 2)`},
		{"nodes: [{gpus: 4}]\n4: 5", `2:1: unknown key "4", want one of name, nodes, pools, failures`},
		// Missing parts.
		{"", `1:1: empty document, want nodes`},
		{"# nothing\n", `1:1: empty document, want nodes`},
		{"---\n", `1:1: empty document, want nodes`},
		{"{}", `1:1: no nodes and no pools, want a list of at least one`},
		{"name: lab", `1:1: no nodes and no pools, want a list of at least one`},
		{"nodes:", `1:8: nodes is empty, want a list of at least one`},
		{"nodes: []", `1:8: nodes is an empty list, want a list of at least one`},
		{"nodes: 15x4", `1:8: nodes "15x4", want a list of at least one`},
		{"nodes:\n  - count: 15", `2:5: a node without gpus, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 1\n  -\n", `3:5: a node is empty, want a mapping of ` + nodeKeys},
		{"nodes:\n  - gpus: 1\n  - 4", `3:5: a node 4, want a mapping of ` + nodeKeys},
		{"- gpus: 4", `1:1: the document is a list, want a mapping of name, nodes, pools, failures`},
		{"nodes: [{gpus: 4}]\nfailures: {repair_hours: 4}",
			`2:11: failures without node_mtbf_hours, want 0, or a number from 0.001 to 1e6`},
		{"nodes: [{gpus: 4}]\nfailures: {node_mtbf_hours: 4}",
			`2:11: failures without repair_hours, want 0, or a number from 0.001 to 1e6`},
		{"nodes: [{gpus: 4}]\nfailures:",
			`2:11: failures is empty, want a mapping of node_mtbf_hours, repair_hours, seed`},
		// Figures.
		{"nodes:\n  - gpus: 0", `2:11: gpus 0, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: -4", `2:11: gpus -4, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 4.0", `2:11: gpus 4.0, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 1e0", `2:11: gpus 1e0, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: \"4\"", `2:11: gpus "4", want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: four", `2:11: gpus "four", want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 010", `2:11: gpus 010, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 0x10", `2:11: gpus 0x10, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 1_0", `2:11: gpus 1_0, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: [4]", `2:11: gpus is a list, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: {n: 4}", `2:11: gpus is a mapping, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus:\n    type: x", `2:10: gpus is empty, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: true", `2:11: gpus true, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 99999999999999999999",
			`2:11: gpus 99999999999999999999, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 4\n    count: 0", `3:12: count 0, want a whole number from 1 to 1000000`},
		{"nodes:\n  - gpus: 1000\n    count: 1000\n  - gpus: 1", `4:5: 1000001 GPUs in total, want at most 1000000`},
		{"nodes:\n  - gpus: 4\n    cpus: -1", `3:11: cpus -1, want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    memory_gb: .nan", `3:16: memory_gb .nan, want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    gpu_memory_gb: .inf", `3:20: gpu_memory_gb .inf, want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    gpu_memory_gb: Inf", `3:20: gpu_memory_gb "Inf", want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    sharing: turns", `3:14: sharing "turns", want one of time-slicing, mps, mig`},
		{"nodes:\n  - gpus: 4\n    sharing: 2", `3:14: sharing 2, want text (a number goes in quotes)`},
		{"nodes:\n  - gpus: 4\n    price_per_hour: 1e400", `3:21: price_per_hour 1e400, want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    power: 650",
			`3:12: power 650, want a mapping of idle_w, busy_gpu_w, sleep_w, curve, wake_seconds`},
		{"nodes:\n  - gpus: 4\n    power: {idle_w: 9, curve: {idle: 1, scale: 2, exponent: 1.5}}",
			`3:31: both idle_w and curve, want one of them`},
		{"nodes:\n  - gpus: 4\n    power: {curve: {idle: 1, scale: 2, exponent: 2.5}}",
			`3:20: power curve of scale 2 and exponent 2.5, want a scale >= 0 and an exponent from 1 to 2`},
		{"nodes:\n  - gpus: 4\n    power: {curve: {scale: 2, slope: 2}}",
			`3:31: unknown key "slope", want one of idle, scale, exponent`},
		{"nodes:\n  - gpus: 4\n    power: {curve: {0: 650, 1: 600}}",
			`3:20: power table with 600 W at use 1 after 650 W at 0, want rising use and power that does not fall`},
		{"nodes:\n  - gpus: 4\n    power: {curve: {0: 650, 1.5: 900}}", `3:29: use "1.5", want a number from 0 to 1`},
		{"nodes:\n  - gpus: 4\n    power: {curve: {0: 650, 0.5: 900}}",
			`3:20: power table from use 0 at 650 W to 0.5, want one from 0 at idle power, 650 W, to 1`},
		{"nodes:\n  - gpus: 4\n    power: {curve: 650}", `3:20: curve 650, want a mapping of idle, scale, exponent`},
		{"nodes:\n  - gpus: 4\n    power: {wake_seconds: -1}", `3:27: wake_seconds -1, want a number from 0 to 1e9`},
		{"nodes:\n  - gpus: 4\n    power: {sleep_w: lots}", `3:22: sleep_w "lots", want a number from 0 to 1e9`},
		{"nodes: [{gpus: 4}]\nfailures: {node_mtbf_hours: 0.0001, repair_hours: 1}",
			`2:29: node_mtbf_hours 0.0001, want 0, or a number from 0.001 to 1e6`},
		{"nodes: [{gpus: 4}]\nfailures: {node_mtbf_hours: 1, repair_hours: 2e6}",
			`2:46: repair_hours 2e6, want 0, or a number from 0.001 to 1e6`},
		{"nodes: [{gpus: 4}]\nfailures: {node_mtbf_hours: 1, repair_hours: 2, seed: -1}",
			`2:55: seed -1, want a whole number from 0 to 9223372036854775807`},
		// Names, types, racks.
		{"nodes:\n  - gpus: 4\n    type: 4090", `3:11: type 4090, want text (a number goes in quotes)`},
		{"nodes:\n  - gpus: 4\n    type: \" v100\"",
			`3:11: type " v100", want printable text without blanks around it`},
		{"nodes:\n  - gpus: 4\n    type: ''", `3:11: type "", want printable text without blanks around it`},
		{"nodes:\n  - gpus: 4\n    name: \"a\\nb\"", `3:11: name "a\nb", want printable text without blanks around it`},
		{"nodes:\n  - gpus: 4\n    name: |\n      a",
			`3:11: name is a block of text, want text (a number goes in quotes)`},
		{"nodes:\n  - gpus: 4\n    name: " + strings.Repeat("x", 201), `3:11: name of 201 bytes, want at most 200`},
		{"nodes:\n  - gpus: 4\n    name: a\n  - gpus: 4\n    name: a",
			`4:5: node name "a" given twice, want names of their own`},
		{"nodes:\n  - {gpus: 4, count: 3}\n  - {gpus: 4, name: node2}",
			`3:5: node name "node2" given twice, want names of their own`},
		{types(sched.MaxGPUTypes + 1), `66:5: type "t64" is one more, want at most 64 types`},
		{"nodes:\n  - {gpus: 4, count: 3, racks: 4}", `2:5: racks 4 for 3 nodes, want at most as many`},
		{"nodes:\n  - {gpus: 4, count: 3, racks: 3, rack: r}", `2:5: both rack and racks, want one of them`},
		{"nodes:\n  - {gpus: 4, racks: 1}\n  - {gpus: 4, rack: rack0}",
			`3:5: rack "rack0" was made by racks of another entry, want another name`},
		{"nodes:\n  - {gpus: 4, rack: rack0}\n  - {gpus: 4, racks: 1}",
			`3:5: racks makes rack "rack0", which another entry names, want another name there`},
		// YAML.
		{"nodes: [{gpus: 4}]\n---\nnodes: [{gpus: 4}]", `2:1: a second document, want one`},
		{"nodes: &n [{gpus: 4}]", `1:8: an anchor, want plain mappings, lists, text and numbers`},
		{"nodes: *n", `1:8: an alias, want plain mappings, lists, text and numbers`},
		{"nodes: !!seq [{gpus: 4}]", `1:8: a tag, want plain mappings, lists, text and numbers`},
		{"nodes:\n  - <<: {gpus: 4}", `2:5: a merge key, want plain mappings, lists, text and numbers`},
		{"? nodes\n: []", `1:1: a key marked by ?, want plain mappings, lists, text and numbers`},
		{"%YAML 1.2\n---\nnodes: []", `1:1: a directive, want plain mappings, lists, text and numbers`},
		{"nodes: [{gpus: 4}", `1:8: sequence end token ']' not found, want YAML`},
		{"nodes:\n  - gpus: 4\n   count: 3", `3:4: value is not allowed in this context, want YAML`},
		{"nodes: gpus: 4", `1:8: mapping value is not allowed in this context, want YAML`},
		{"nodes:\n\t- gpus: 4", `2:1: found character '	' that cannot start any token, want YAML`},
		{"name: é\xff", `1:8: not text in UTF-8, want a YAML file`},
		{"name: a\x00b", `1:8: not text in UTF-8, want a YAML file`},
		{strings.Repeat("[", 30), `1:21: nested more than 20 deep, want less`},
		{strings.Repeat("- ", 30), `1:41: nested more than 20 deep, want less`},
		{strings.Repeat("a: ", 30), `1:62: nested more than 20 deep, want less`},
		{keys(maxKeys + 1), `101:5: a mapping of more than 100 keys, want less`},
		{"nodes:\n" + strings.Repeat("-\n", maxAbsent+1), `102:1: more than 100 values left out, want them given`},
		{"nodes: [" + strings.Repeat("{a},\n", maxAbsent+1), `101:3: more than 100 values left out, want them given`},
		{"nodes: [" + strings.Repeat("{a: },\n", maxAbsent+1), `101:3: more than 100 values left out, want them given`},
		{strings.Repeat("#", maxFile+1), `1:1: more than 1 MiB, want less`},
	} {
		_, err := Parse([]byte(c.src), "f.yaml")
		if got, want := fmt.Sprint(err), "cluster: f.yaml:"+c.want; got != want {
			t.Errorf("%.60q:\n got %s\nwant %s", c.src, got, want)
		}
	}
}
