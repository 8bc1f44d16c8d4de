package controller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// versions returns the versions of all ConfigMaps by name.
func versions(t *testing.T, api client.Client) map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	of := make(map[string]string)
	for i := range list.Items {
		of[list.Items[i].Name] = list.Items[i].ResourceVersion
	}
	return of
}

// yard returns a desk over so many nodes of two GPUs each, in shards of a size.
func yard(t *testing.T, nodes, per int) *desk {
	t.Helper()
	d := newDesk(t, interceptor.Funcs{})
	d.v.Nodes, d.v.GPUs, d.v.Types = nil, nil, []string{"H100"}
	for i := range nodes {
		name := string(rune('a' + i))
		d.v.Nodes = append(d.v.Nodes, sched.Node{State: sched.NodeUp, First: sched.GPUID(2 * i),
			Spec: sched.NodeSpec{Name: name, GPUs: 2, Devices: []string{name + "0", name + "1"}}})
		for range 2 {
			d.v.GPUs = append(d.v.GPUs, sched.GPU{Node: sched.NodeID(i), State: sched.GPUInUse})
		}
	}
	d.cluster = true
	d.shards = newShards(d.v, per, false, nil, false)
	if err := d.writeCluster(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Ensure that an event has the shard of its node alone be written, and the head where it changed; that a GPU that is
// not blamed any more is one that changed; and that what is written is what is read.
func TestShardsWritten(t *testing.T) {
	d := yard(t, 5, 2)
	for _, step := range []struct {
		name  string
		event sched.Event
		want  []string
	}{
		{"nothing", sched.Event{Kind: sched.Ticked, Node: sched.None, Job: sched.None}, nil},
		{"node", sched.Event{Kind: sched.NodeChanged, Node: 3, Job: sched.None}, []string{shardMap(2, 1)}},
		{"gpu", sched.Event{Kind: sched.GPUChanged, Value: 9, Node: sched.None, Job: sched.None},
			[]string{shardMap(2, 2)}},
		{"blame", sched.Event{Kind: sched.StartFailed, Job: 0, Node: sched.None, GPUs: []sched.GPUID{0, 9}},
			[]string{shardMap(2, 0), shardMap(2, 2)}},
		{"up", sched.Event{Kind: sched.AttemptStarted, Job: 0, Node: sched.None},
			[]string{shardMap(2, 2)}},
		{"up again", sched.Event{Kind: sched.AttemptStarted, Job: 0, Node: sched.None}, nil},
	} {
		before := versions(t, d.api)
		d.v.Version++
		switch step.name {
		case "node":
			d.v.Nodes[3].State = sched.NodeDraining
		case "gpu":
			d.v.GPUs[9].State = sched.GPUStuck
		case "blame":
			d.v.GPUs[0].Blamed, d.v.GPUs[9].Blamed = 1, 1
			d.v.Jobs = []sched.Job{{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, GPUs: []sched.GPUID{9}}}
			d.jobs = map[sched.JobID]*saved{0: {}}
		case "up":
			d.v.GPUs[9].Blamed = 0
		}
		d.cluster = d.shards.note(d.v, &step.event) || d.cluster
		if err := d.writeCluster(); err != nil {
			t.Fatal(err)
		}
		var wrote []string
		for name, version := range versions(t, d.api) {
			if before[name] != version {
				wrote = append(wrote, name)
			}
		}
		if slices.Sort(wrote); !slices.Equal(wrote, step.want) {
			t.Errorf("%s: %q were written, want %q", step.name, wrote, step.want)
		}
		compare(t, d)
	}
}

// compare checks that the API has the nodes and GPUs of a desk.
func compare(t *testing.T, d *desk) {
	t.Helper()
	c := New(Options{Reader: d.api, Namespace: "trainyard", Log: slog.New(slog.DiscardHandler)})
	cl, err := c.cluster(t.Context(), &loaded{blobs: make(map[string]blob)})
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := record.View(nil, cl, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := spread(&v), spread(d.v); got != want {
		t.Errorf("%s is read, want %s", got, want)
	}
}

// Ensure that shards whose nodes have more GPUs than one ConfigMap takes become smaller, whenever the leader dies on
// the way there, and that those of the old size do not count from then on.
func TestShardsBecomeSmaller(t *testing.T) {
	deaths := 0
	for dies := range 12 {
		d := yard(t, 9, 8)
		compare(t, d)
		draw, writes := rand.New(rand.NewPCG(5, 6)), 0
		for i := range d.v.Nodes {
			long := make([]byte, 300)
			for k := range long {
				long[k] = byte('a' + draw.IntN(26))
			}
			d.v.Nodes[i].Spec.Devices = []string{string(long), "x"}
		}
		d.fencedWriter.api = interceptor.NewClient(d.api, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object,
				opts ...client.CreateOption) error {
				if writes++; dies > 0 && writes == dies {
					return errDied
				}
				return c.Create(ctx, o, opts...)
			}})
		d.fatal = func(err error) bool { return errors.Is(err, errDied) }
		was := *d.v
		was.Nodes = slices.Clone(d.v.Nodes)
		for i := range was.Nodes {
			was.Nodes[i].Spec.Devices = []string{string(rune('a'+i)) + "0", string(rune('a'+i)) + "1"}
		}
		d.maxBlob, d.cluster, d.shards.all = 800, true, true
		switch err := d.writeCluster(); {
		case errors.Is(err, errDied): // what was written before is read
			d.v = &was
			deaths++
		case err != nil:
			t.Fatal(err)
		case d.shards.per >= 8 || d.shards.per < 1:
			t.Errorf("shards of %d nodes", d.shards.per)
		}
		compare(t, d)
		for name := range versions(t, d.api) {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: name}}
			if err := d.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			if n := len(m.BinaryData[blobKey]); n > 800 {
				t.Errorf("%s has %d bytes", name, n)
			}
		}
	}
	if deaths < 4 {
		t.Errorf("%d deaths, want more: nothing is tested", deaths)
	}
}

// Ensure that a memory of any size is read as it was written, in ConfigMaps each of which the API takes, that one
// before is there until all of the next is, and that one that is not whole counts as gone.
func TestMemoryInChunks(t *testing.T) {
	d := newDesk(t, interceptor.Funcs{})
	d.maxBlob = 100
	read := func() []byte {
		c := New(Options{Reader: d.api, Namespace: "trainyard", Log: slog.New(slog.DiscardHandler)})
		l := &loaded{blobs: make(map[string]blob)}
		rest, err := c.memory(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		return rest
	}
	var last []byte
	for i, n := range []int{0, 1, 100, 101, 999, 350, 1000, 12, 101} {
		rest := bytes.Repeat([]byte{byte('a' + i)}, n)
		if err := d.writeMemory(rest); err != nil {
			t.Fatal(err)
		}
		if got := read(); !bytes.Equal(got, rest) {
			t.Errorf("%d bytes are read as %d", n, len(got))
		}
		last = rest
	}
	for dies := 1; dies < 8; dies++ {
		writes := 0
		die := func() error {
			if writes++; writes == dies {
				return errDied
			}
			return nil
		}
		d.fencedWriter.api = interceptor.NewClient(d.api, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object,
				opts ...client.CreateOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object,
				opts ...client.UpdateOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.Update(ctx, o, opts...)
			}})
		d.fatal = func(err error) bool { return errors.Is(err, errDied) }
		next := bytes.Repeat([]byte{byte('A' + dies)}, 500)
		if err := d.writeMemory(next); err == nil {
			last = next
		} else if !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		if got := read(); !bytes.Equal(got, last) {
			t.Errorf("died at write %d: %.9q... is read, want %.9q", dies, got, last)
		}
	}
	d.fencedWriter.api = d.api
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: chunkMap(d.memory.side, 1)}}
	if err := d.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	m.BinaryData[blobKey][7]++
	if err := d.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != nil {
		t.Errorf("%d bytes are read of what was edited", len(got))
	}
}

// Ensure that a cluster that a version before shards kept as a whole is read, that its nodes are in shards from then
// on, and that going back writes it whole again, which that version takes.
func TestUpgradeOfTheCluster(t *testing.T) {
	r := newRig(t, "fifo", nil, 12, 3)
	for _, schema := range []int{2, 3, 2, 1, 3, 0} {
		r.alter = func(o *Options) { o.RecordSchema = schema }
		r.writes.Store(40)
		if err := r.lead(); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "trainyard", Name: ClusterMap}}
		if err := r.api.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		_, c, err := record.ReadHead(m.BinaryData[blobKey])
		if old := schema == 1 || schema == 2; err != nil || (c != nil) != old || old && len(c.Nodes) != 4 {
			t.Errorf("schema %d: whole %v, %v", schema, c != nil, err)
		}
	}
	r.writes.Store(-1)
	if err := r.lead(); err != nil {
		t.Fatal(err)
	}
	r.allSucceeded()
	if strings.Contains(r.log.String(), "while no one led") {
		t.Error("jobs are missed that are there")
	}
}

// Ensure that a pool has its number in the head before a node of it is in a shard, whenever the leader dies: else the
// next one gives the number to another pool, and the node to that.
func TestPoolBeforeItsNodes(t *testing.T) {
	d := yard(t, 3, 2)
	c := New(Options{Reader: d.api, Namespace: "trainyard", Log: slog.New(slog.DiscardHandler)})
	l := &loaded{blobs: make(map[string]blob)}
	if _, err := c.cluster(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	d.v.Pools = []sched.Pool{{Spec: sched.PoolSpec{Name: "spot", GPUs: 2}}} // as the next leader finds it
	d.shards, d.cluster = newShards(d.v, 2, false, l.head, false), true
	d.v.Nodes[2].Spec.Pool = 0
	for i := range 2 {
		d.v.Nodes[i].Spec.Pool = sched.None
	}
	writes := 0
	d.fencedWriter.api = interceptor.NewClient(d.api, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if strings.HasPrefix(o.GetName(), ClusterMap+"-") {
				writes++
			}
			if o.GetName() == ClusterMap && writes > 0 {
				return errDied
			}
			return c.Update(ctx, o, opts...)
		}})
	d.fatal = func(err error) bool { return errors.Is(err, errDied) }
	d.v.Pools[0].Ordered = 1 // so that the head is another at the end
	if err := d.writeCluster(); err != nil && !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	if cl, err := c.cluster(t.Context(), &loaded{blobs: make(map[string]blob)}); err != nil || len(cl.Pools) != 1 {
		t.Errorf("the node of pool 0 is of %d pools: %v", len(cl.Pools), err)
	}
}

// Ensure that a list of chunks of which none is there is read at the cost of one look, whatever number it gives.
func TestChunksThatAreGone(t *testing.T) {
	d, looks := newDesk(t, interceptor.Funcs{}), 0
	text := []byte(`{"Schema":1,"Side":1,"Count":2000000000,"Bytes":2000000000,"Sum":""}`)
	if err := d.writeEntry(MemoryMap, chunksKey, text); err != nil {
		t.Fatal(err)
	}
	reader := interceptor.NewClient(d.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			if looks++; looks > 10 {
				return errDied
			}
			return c.Get(ctx, key, o, opts...)
		}})
	c := New(Options{Reader: reader, Namespace: "trainyard", Log: slog.New(slog.DiscardHandler)})
	if rest, err := c.memory(t.Context(), &loaded{blobs: make(map[string]blob)}); err != nil || rest != nil {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}
