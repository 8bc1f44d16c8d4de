package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// shardMap is the name of the ConfigMap of a shard of the cluster. Shards of another size have other names, so that the
// head says which of them count.
func shardMap(per, i int) string { return fmt.Sprintf("%s-%d-%d", ClusterMap, per, i) }

// maxBlob is how many bytes of a shard, or of the memory of a system, go into one ConfigMap: the API takes 1 MiB.
const maxBlob = 768 << 10

// shards is which nodes are to be written. Only the shards that changed are.
type shards struct {
	per   int
	whole bool         // as versions before shards knew it: all in one
	all   bool         // are to be written
	dirty map[int]bool // that are
	slots map[string]sched.NodeID
	types []string // as written
	pools []string // as written, their names
	nodes int      // as written

	blamed map[sched.GPUID]bool // for starts that failed, as far as is written or to be written
}

// newShards returns the shards of v as it was read, none of which this leader has written. head is that which was read,
// nil: there was none, so that it must not come before the shards; lost: some that it counts were lost.
func newShards(v *sched.View, per int, whole bool, head *record.Head, lost bool) shards {
	s := shards{per: per, whole: whole, all: true, dirty: make(map[int]bool), slots: make(map[string]sched.NodeID),
		types: v.Types, pools: poolNames(v.Pools), nodes: len(v.Nodes), blamed: make(map[sched.GPUID]bool)}
	if head != nil {
		s.types, s.pools = head.Types, poolNames(head.Pools)
		s.per = head.PerShard // shards of one size go together
	}
	if lost { // numbers of nodes are not those of the shards that are there, which count until the head is written
		s.types, s.pools, s.nodes = v.Types, poolNames(v.Pools), len(v.Nodes)
		if s.per /= 2; s.per == 0 {
			s.per = record.ShardNodes
		}
	}
	for i := range v.Nodes {
		s.slots[v.Nodes[i].Spec.Name] = sched.NodeID(i)
	}
	for i := range v.GPUs {
		if v.GPUs[i].Blamed > 0 {
			s.blamed[sched.GPUID(i)] = true
		}
	}
	return s
}

// acquits notes which nodes an attempt that is up changes, by GPUs that were blamed until then. It reports whether
// there are any.
func (s *shards) acquits(v *sched.View, e *sched.Event) (some bool) {
	if len(s.blamed) == 0 {
		return false
	}
	for _, g := range v.Jobs[e.Job].GPUs {
		if s.blamed[g] && v.GPUs[g].Blamed == 0 {
			delete(s.blamed, g)
			s.dirty[int(v.GPUs[g].Node)/s.per] = true
			some = true
		}
	}
	return some
}

// note notes which nodes an event changes. It reports whether there is something of the cluster to be written.
func (s *shards) note(v *sched.View, e *sched.Event) bool {
	switch e.Kind {
	case sched.NodeLeft, sched.NodeJoined, sched.NodeChanged, sched.GPUChanged, sched.PoolChanged, sched.PriceChanged,
		sched.Moved, sched.StartFailed: // that blames GPUs
		s.touch(v, e)
		return true
	case sched.Ordered:
		if e.Job == sched.None {
			s.touch(v, e)
			return true
		}
	case sched.AttemptStarted:
		return s.acquits(v, e)
	}
	return false
}

// touch notes which nodes an event changes.
func (s *shards) touch(v *sched.View, e *sched.Event) {
	var nodes []sched.NodeID
	if e.Node != sched.None {
		nodes = append(nodes, e.Node)
	}
	if e.Kind == sched.NodeJoined { // it leaves the slot that it had
		name := v.Nodes[e.Node].Spec.Name
		if was, known := s.slots[name]; known {
			nodes = append(nodes, was)
		}
		s.slots[name] = e.Node
	}
	gpus := e.GPUs
	if e.Kind == sched.GPUChanged {
		gpus = []sched.GPUID{sched.GPUID(e.Value)}
	}
	if e.Kind == sched.StartFailed {
		for _, g := range gpus {
			s.blamed[g] = true
		}
	}
	if e.Kind == sched.PriceChanged && e.Node == sched.None {
		s.all = true
	}
	for _, i := range record.ShardsOf(v, s.per, nodes, gpus) {
		s.dirty[i] = true
	}
}

// writeCluster writes nodes and pools, if they changed: the shards that did, and then the head, by which nodes that are
// new count. A type of GPU, and a pool, has its number before a node has it.
func (s *store) writeCluster() error {
	if !s.cluster {
		return nil
	}
	if s.shards.whole {
		c := record.ClusterOf(s.v, s.origin())
		packed, err := c.Pack()
		if err == nil {
			err = s.writeBlob(ClusterMap, packed)
		}
		s.cluster = err != nil
		return err
	}
	if !slices.Equal(s.shards.types, s.v.Types) || !slices.Equal(s.shards.pools, poolNames(s.v.Pools)) {
		if err := s.writeHead(s.shards.nodes); err != nil {
			return err
		}
	}
	for i := 0; i*s.shards.per < len(s.v.Nodes); i++ {
		if !s.shards.all && !s.shards.dirty[i] {
			continue
		}
		switch smaller, err := s.writeShard(i); {
		case err != nil:
			return err
		case smaller:
			i = -1 // all of them
		}
	}
	if err := s.writeHead(len(s.v.Nodes)); err != nil {
		return err
	}
	s.shards.all, s.cluster = false, false
	clear(s.shards.dirty)
	return nil
}

// writeShard writes shard i. Where its nodes have so many GPUs that it might not be taken, it has shards be smaller
// from now on and writes none: all are to be written then, and the head makes them count at once.
func (s *store) writeShard(i int) (smaller bool, err error) {
	shard := record.ShardOf(s.v, i, s.shards.per, s.leader)
	packed, err := shard.Pack()
	if err != nil {
		return false, err
	}
	if len(packed) > s.maxBlob && s.shards.per > 1 {
		s.shards.per /= 2
		s.shards.all = true
		return true, nil
	}
	return false, s.writeBlob(shardMap(s.shards.per, i), packed)
}

// writeHead writes the head of a cluster of which so many nodes are in shards.
func (s *store) writeHead(nodes int) error {
	head := record.HeadOf(s.v, s.origin(), s.shards.per)
	head.Nodes = nodes
	packed, err := head.Pack()
	if err != nil {
		return err
	}
	if err := s.writeBlob(ClusterMap, packed); err != nil {
		return err
	}
	s.shards.types, s.shards.pools, s.shards.nodes = slices.Clone(s.v.Types), poolNames(s.v.Pools), nodes
	return nil
}

// poolNames returns the names of pools by number.
func poolNames(pools []sched.Pool) (names []string) {
	for i := range pools {
		names = append(names, pools[i].Spec.Name)
	}
	return names
}

// errCluster says that what is kept of nodes and GPUs cannot be read.
var errCluster = errors.New("what is kept of the cluster cannot be read")

// spoilt is errCluster, with the ConfigMap and what is wrong with it.
type spoilt struct {
	name string
	why  error
}

// Error says what may be done, too.
func (e spoilt) Error() string {
	if e.name != ClusterMap {
		return fmt.Sprintf("ConfigMap %s cannot be read: %v", e.name, e.why)
	}
	return fmt.Sprintf("ConfigMap %s cannot be read; put it right, or delete it: nodes are looked for among what jobs "+
		"hold then: %v", e.name, e.why)
}

// Is reports whether err is errCluster.
func (e spoilt) Is(err error) bool { return err == errCluster }

// Unwrap returns what is wrong.
func (e spoilt) Unwrap() error { return e.why }

// errNoShard says that a shard is not there.
var errNoShard = errors.New("it is not there")

// cluster reads nodes and pools as they were; nothing in a new cluster.
func (c *Controller) cluster(ctx context.Context, l *loaded) (record.Cluster, error) {
	packed, err := c.blob(ctx, l, ClusterMap)
	if _, there := l.blobs[ClusterMap]; err != nil || !there {
		if err == nil && l.version() > 0 {
			l.lose(c, fmt.Errorf("ConfigMap %s: %w", ClusterMap, errNoShard))
		}
		return record.Cluster{}, err
	}
	head, whole, err := record.ReadHead(packed)
	switch {
	case errors.Is(err, record.ErrNewer):
		return record.Cluster{}, newer(err)
	case err != nil:
		return record.Cluster{}, spoilt{ClusterMap, err}
	case whole != nil:
		return *whole, nil
	}
	l.head = head
	var list []record.Shard
	for i := range head.Shards() {
		one, bad := c.shard(ctx, l, head.PerShard, i)
		if errors.Is(bad, errCluster) {
			one = record.Shard{Lost: true}
			l.lose(c, bad)
		} else if bad != nil {
			return record.Cluster{}, bad
		}
		list = append(list, one)
	}
	return c.join(l, head, list)
}

// join puts the shards of a cluster together. Those that do not go together are lost.
func (c *Controller) join(l *loaded, head *record.Head, list []record.Shard) (record.Cluster, error) {
	for {
		cl, mended, bad := head.Join(list, l.version())
		var unfit *record.Unfit
		switch {
		case errors.As(bad, &unfit):
			l.lose(c, spoilt{shardMap(head.PerShard, unfit.Shards[0]), bad})
			for _, i := range unfit.Shards {
				list[i] = record.Shard{Lost: true}
			}
			continue
		case bad != nil:
			return cl, spoilt{ClusterMap, bad}
		}
		for _, what := range mended {
			c.o.Log.Warn("the last batch of an earlier leader is mended", "what", what)
		}
		return cl, nil
	}
}

// lose notes that a shard is lost.
func (l *loaded) lose(c *Controller, why error) {
	c.o.Log.Error("nodes of the cluster are lost; they are looked for among what jobs hold", "error", why)
	if l.lost == "" {
		l.lost = why.Error()
	}
}

// shard reads shard i of the cluster, of those that have so many nodes.
func (c *Controller) shard(ctx context.Context, l *loaded, per, i int) (s record.Shard, err error) {
	name := shardMap(per, i)
	packed, err := c.blob(ctx, l, name)
	if err != nil {
		return s, err
	}
	if _, there := l.blobs[name]; !there {
		return s, spoilt{name, errNoShard}
	}
	s, err = record.ReadShard(packed, i)
	switch most := l.led(); {
	case errors.Is(err, record.ErrNewer):
		return s, newer(err)
	case err != nil:
		return s, spoilt{name, err}
	case most > 0 && s.Leader > most:
		return s, spoilt{name, fmt.Errorf("it is of leader %d, of %d so far", s.Leader, most)}
	}
	l.shardLeader = max(l.shardLeader, s.Leader)
	return s, nil
}
