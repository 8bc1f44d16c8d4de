package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// kept is the head and the shards of a View, read again.
func kept(t *testing.T, v *sched.View, perShard int) (*Head, []Shard) {
	t.Helper()
	head := HeadOf(v, time.Time{}, perShard)
	packed, err := head.Pack()
	if err != nil {
		t.Fatal(err)
	}
	h, whole, err := ReadHead(packed)
	if err != nil || whole != nil {
		t.Fatal(whole, err)
	}
	var list []Shard
	for i := range h.Shards() {
		s := ShardOf(v, i, perShard, 7)
		if packed, err = s.Pack(); err != nil {
			t.Fatal(err)
		}
		read, err := ReadShard(packed, i)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, read)
	}
	return h, list
}

// Ensure that the shards of a cluster of any size make that cluster, and that nodes beyond the head do not count.
func TestShards(t *testing.T) {
	for _, nodes := range []int{0, 1, 3, 4, 5, 12} {
		v := wide(8 * nodes)
		v.Version, v.Types = 9, []string{"H100"}
		h, list := kept(t, v, 4)
		c, mended, err := h.Join(list, 9)
		if want := ClusterOf(v, time.Time{}); err != nil || len(mended) > 0 || !same(t, c, want) {
			t.Errorf("%d nodes: %v, %q: %+v, want %+v", nodes, err, mended, c, want)
		}
		if nodes < 2 {
			continue
		}
		h.Nodes-- // the last one is of a batch that was cut short
		c, _, err = h.Join(list[:h.Shards()], 9)
		if err != nil || len(c.Nodes) != nodes-1 || len(c.GPUs) != 8*(nodes-1) {
			t.Errorf("%d nodes, %d GPUs: %v", len(c.Nodes), len(c.GPUs), err)
		}
	}
}

func same(t *testing.T, a, b Cluster) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y) || reflect.DeepEqual(a, b) || len(a.Nodes)+len(b.Nodes) == 0
}

// Ensure that a node that a cut batch left in two places is in the newer one, and that one that is there twice
// otherwise is refused.
func TestNodeInTwoShards(t *testing.T) {
	for _, c := range []struct {
		first, second uint64 // versions of the shards
		gone          int    // which of the two gives way; -1: neither
	}{{9, 12, 0}, {12, 9, 1}, {9, 9, -1}, {7, 8, -1}, {12, 12, -1}} {
		v := wide(64)
		v.Nodes[6].Spec.Name = v.Nodes[1].Spec.Name
		h, list := kept(t, v, 4)
		list[0].Version, list[1].Version = c.first, c.second
		cl, mended, err := h.Join(list, 10)
		if c.gone < 0 {
			var unfit *Unfit
			if !errors.Is(err, errTwice) || !errors.As(err, &unfit) || !reflect.DeepEqual(unfit.Shards, []int{0, 1}) ||
				!strings.Contains(err.Error(), "gpu-pool-a-node-0001, in shards 0 and 1") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		at := []int{1, 6}
		if err != nil || len(mended) != 1 || cl.Nodes[at[c.gone]].State != sched.NodeGone ||
			cl.Nodes[at[1-c.gone]].State != sched.NodeUp {
			t.Errorf("%+v: %v, %q: %+v", c, err, mended, cl.Nodes)
		}
	}
}

// Ensure that the nodes of shards that are there make a cluster without those of shards that are lost.
func TestLostShards(t *testing.T) {
	v := wide(8 * 11)
	for lost := range 3 {
		h, list := kept(t, v, 4)
		list[lost] = Shard{Lost: true}
		c, mended, err := h.Join(list, 9)
		if err != nil || len(mended) > 0 {
			t.Fatal(err, mended)
		}
		back, _, err := View(nil, c, 0, 0, 0)
		if err != nil || len(back.Nodes) >= 11 || len(back.GPUs) != 8*len(back.Nodes) {
			t.Errorf("shard %d is lost: %d nodes, %d GPUs, %v", lost, len(back.Nodes), len(back.GPUs), err)
		}
		for i := range back.Nodes {
			name := back.Nodes[i].Spec.Name
			if at := slices.IndexFunc(v.Nodes, func(n sched.Node) bool { return n.Spec.Name == name }); at/4 == lost {
				t.Errorf("shard %d is lost, and node %s is there", lost, name)
			}
		}
	}
}

// Ensure that what no leader could have written is refused with one sentence, and what comes after this version as
// such.
func TestBadShards(t *testing.T) {
	v := wide(64)
	h, list := kept(t, v, 4)
	packed := func(change func(*Shard)) []byte {
		s := ShardOf(v, 1, 4, 7)
		change(&s)
		b, err := s.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	whole := packed(func(*Shard) {})
	for want, b := range map[string][]byte{
		"gzip: invalid header":             []byte("none, and long enough to be a header"),
		"unexpected EOF":                   whole[:len(whole)/2],
		"EOF":                              nil,
		"it is shard 2, want 1":            packed(func(s *Shard) { s.Shard = 2 }),
		"schema 1, want 2":                 packed(func(s *Shard) { s.Schema = 1 }),
		"schema 0, want 2":                 packed(func(s *Shard) { s.Schema = 0 }),
		"GPUs, 32 of them of nodes":        packed(func(s *Shard) { s.GPUs = append(s.GPUs, GPU{}) }),
		"has 8 GPUs, of which 1 are there": packed(func(s *Shard) { s.GPUs = s.GPUs[:25] }),
	} {
		if _, err := ReadShard(b, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := ReadShard(packed(func(s *Shard) { s.Schema = 3 }), 1); !errors.Is(err, ErrNewer) {
		t.Errorf("%v, want %v", err, ErrNewer)
	}
	list[1].Nodes, list[1].GPUs = list[1].Nodes[:3], list[1].GPUs[:24]
	if _, _, err := h.Join(list, 0); err == nil || !strings.Contains(err.Error(), "shard 1 has 3 nodes, want 4") {
		t.Error(err)
	}
	for _, bad := range []Head{{Schema: 2, Nodes: -1, PerShard: 1}, {Schema: 2, Nodes: 1}, {Schema: 2, PerShard: -4},
		{Schema: 2, Nodes: 1 << 60, PerShard: 1}} {
		b, err := bad.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadHead(b); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	if _, _, err := unpack(mustPack(t, h), wholeSchema, wholeSchema); !errors.Is(err, ErrNewer) {
		t.Errorf("the version before takes shards for %v, want %v", err, ErrNewer)
	}
}

func mustPack(t *testing.T, h *Head) []byte {
	t.Helper()
	b, err := h.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Ensure that no shard of nodes of 16 GPUs, each with a name of its own, comes near to what the API takes, however many
// nodes there are, and that the head does not grow with them.
func TestSizeOfShards(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v := &sched.View{}
	for i := range 2 * ShardNodes {
		devices := make([]string, 16)
		for k := range devices {
			devices[k] = fmt.Sprintf("GPU-%08x-%04x-%04x-%04x-%012x", r.Uint32(), k, k, k, r.Uint64()>>16)
			v.GPUs = append(v.GPUs, sched.GPU{Node: sched.NodeID(i)})
		}
		v.Nodes = append(v.Nodes, sched.Node{First: sched.GPUID(16 * i), Spec: sched.NodeSpec{
			Name: fmt.Sprint("node-", r.Uint64()), GPUs: 16, Devices: devices}})
	}
	h, list := kept(t, v, ShardNodes)
	for i := range list {
		b, err := list[i].Pack()
		if err != nil || len(b) > 100_000 {
			t.Errorf("shard %d: %d bytes, %v", i, len(b), err)
		}
	}
	if h.Nodes = mostNodes; len(mustPack(t, h)) > 1000 {
		t.Errorf("the head has %d bytes", len(mustPack(t, h)))
	}
}

// Ensure that of a node that cut batches of two leaders left in two places the later leader's counts, whatever events
// it had folded, since it started from a complete batch again; and that a place whose node is gone gives its name up,
// as a node would join twice else.
func TestNodeInTwoShardsOfTwoLeaders(t *testing.T) {
	for _, c := range []struct {
		leaders  [2]int64
		versions [2]uint64
		states   [2]sched.NodeState
		gone     int
	}{
		{leaders: [2]int64{8, 7}, versions: [2]uint64{11, 11}, gone: 1},
		{leaders: [2]int64{7, 8}, versions: [2]uint64{11, 11}, gone: 0},
		{leaders: [2]int64{8, 7}, versions: [2]uint64{11, 15}, gone: 1},
		{leaders: [2]int64{7, 8}, versions: [2]uint64{9, 10}, gone: 0},
		{leaders: [2]int64{7, 7}, versions: [2]uint64{12, 9}, gone: 1,
			states: [2]sched.NodeState{sched.NodeUp, sched.NodeGone}},
		{leaders: [2]int64{7, 7}, versions: [2]uint64{12, 9}, gone: 0,
			states: [2]sched.NodeState{sched.NodeGone, sched.NodeUp}},
	} {
		v := wide(64)
		v.Nodes[6].Spec.Name = v.Nodes[1].Spec.Name
		v.Nodes[1].State, v.Nodes[6].State = c.states[0], c.states[1]
		h, list := kept(t, v, 4)
		for i := range 2 {
			list[i].Leader, list[i].Version = c.leaders[i], c.versions[i]
		}
		cl, mended, err := h.Join(list, 10)
		if at := []int{1, 6}; err != nil || len(mended) != 1 || cl.Nodes[at[c.gone]].Spec.Name != "" ||
			cl.Nodes[at[1-c.gone]].Spec.Name == "" {
			t.Errorf("%+v: %v, %q", c, err, mended)
		}
	}
}
