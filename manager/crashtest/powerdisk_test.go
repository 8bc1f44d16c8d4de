package crashtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// disk is a disk with what is durable on it, and what is not yet. A name is durable once its folder was synced, the
// bytes of a file once the file was: file systems promise no more.
type disk struct {
	nodes   []*node
	pending []change
	ignored func(path string, folder bool) bool // syncs that are taken for none; nil = none is
}

// node is a file or a folder. now is what everyone sees, the rest is durable.
type node struct {
	data  []byte // of size bytes; the rest is zero
	size  int64
	names map[string]int // of a folder
	now   map[string]int // the same, as it is seen
	long  int64          // the size that is seen
}

// change is one that is not durable. Names that change belong to their folders.
type change struct {
	node  int
	data  []byte // bytes that go to at; nil = the size changes to at
	at    int64
	names []naming
	last  int // line at which it had happened
}

// naming gives a name to a node, or to none.
type naming struct {
	folder int
	name   string
	node   int // -1 = none
}

const noNode = -1

func newDisk() *disk { return &disk{nodes: []*node{newFolder()}} }

func newFolder() *node { return &node{names: make(map[string]int), now: make(map[string]int)} }

// find returns a node as it is seen, or noNode.
func (d *disk) find(path string) int {
	at := 0
	for name := range strings.SplitSeq(path, "/") {
		if name == "." {
			continue
		}
		next, is := d.nodes[at].now[name]
		if !is {
			return noNode
		}
		at = next
	}
	return at
}

// give gives names, which others see at once.
func (d *disk) give(e *effect, names ...naming) {
	for _, n := range names {
		if n.node == noNode {
			delete(d.nodes[n.folder].now, n.name)
		} else {
			d.nodes[n.folder].now[n.name] = n.node
		}
	}
	d.pending = append(d.pending, change{node: names[0].folder, names: names, last: e.last})
}

// do takes an effect. It returns an error if that cannot have happened on this disk.
func (d *disk) do(e *effect) error {
	id, up, name := d.find(e.path), d.find(filepath.Dir(e.path)), filepath.Base(e.path)
	switch {
	case e.kind == removes && id == noNode: // of a socket
		return nil
	case up == noNode, id == noNode && e.kind != makesFile && e.kind != makesFolder:
		return fmt.Errorf("line %d: %d of %s, which is not there", e.last+1, e.kind, e.path)
	case e.kind == makesFile && id != noNode:
		return nil
	}
	switch e.kind {
	case makesFile, makesFolder:
		made := &node{}
		if e.kind == makesFolder {
			made = newFolder()
		}
		d.nodes = append(d.nodes, made)
		d.give(e, naming{up, name, len(d.nodes) - 1})
	case renames:
		to := d.find(filepath.Dir(e.other))
		if to == noNode {
			return fmt.Errorf("line %d: renamed to %s, which has no folder", e.last+1, e.other)
		}
		d.give(e, naming{to, filepath.Base(e.other), id}, naming{up, name, noNode})
	case removes:
		d.give(e, naming{up, name, noNode})
	case syncs:
		d.sync(id, e)
	default:
		d.fill(id, e)
	}
	return nil
}

// fill changes what is in a file.
func (d *disk) fill(id int, e *effect) {
	n := d.nodes[id]
	c := change{node: id, at: e.size, last: e.last}
	switch e.kind {
	case writes:
		if c.at, c.data = e.at, e.data; e.at < 0 {
			c.at = n.long
		}
		n.long = max(n.long, c.at+int64(len(c.data)))
	case grows:
		n.long = max(n.long, e.size)
		c.at = n.long
	default:
		n.long = e.size
	}
	d.pending = append(d.pending, c)
}

// sync makes durable what had happened to a node when the call came.
func (d *disk) sync(id int, e *effect) {
	if d.ignored != nil && d.ignored(e.path, d.nodes[id].now != nil) {
		return
	}
	left, own := make([]change, 0, len(d.pending)), owner(d.nodes)
	for _, c := range d.pending {
		is := c.node == id || slices.ContainsFunc(c.names, func(n naming) bool { return n.folder == id })
		if is && c.last < e.first {
			own(&c)
			c.apply(d.nodes, nil)
		} else {
			left = append(left, c)
		}
	}
	d.pending = left
}

// owner returns what makes copies of the nodes that a change is about, once each: images share what they had.
func owner(nodes []*node) func(c *change) {
	fresh := make(map[int]bool)
	own := func(id int) {
		if !fresh[id] {
			n := *nodes[id]
			n.data, n.names = slices.Clone(n.data), maps.Clone(n.names)
			nodes[id], fresh[id] = &n, true
		}
	}
	return func(c *change) {
		own(c.node)
		for _, n := range c.names {
			own(n.folder)
		}
	}
}

// apply makes a change durable. torn says which sectors of what is written are; nil = all.
func (c *change) apply(nodes []*node, torn func(sector int64) bool) {
	for _, n := range c.names {
		if n.node == noNode {
			delete(nodes[n.folder].names, n.name)
		} else {
			nodes[n.folder].names[n.name] = n.node
		}
	}
	if c.names != nil {
		return
	}
	n := nodes[c.node]
	if c.data == nil {
		n.size = c.at
		n.data = n.data[:min(int64(len(n.data)), n.size)]
		return
	}
	for at, end := c.at, c.at+int64(len(c.data)); at < end; {
		next := min((at/sector+1)*sector, end)
		if torn == nil || torn(at/sector) {
			n.put(c.data[at-c.at:next-c.at], at)
		}
		at = next
	}
}

// put writes bytes.
func (n *node) put(b []byte, at int64) {
	end := at + int64(len(b))
	if more := end - int64(len(n.data)); more > 0 {
		n.data = append(n.data, make([]byte, more)...)
	}
	copy(n.data[at:], b)
	n.size = max(n.size, end)
}

// bytes are all that a file has durably.
func (n *node) bytes() []byte {
	return append(slices.Clone(n.data), make([]byte, n.size-int64(len(n.data)))...)
}

// cut is what becomes of what is not durable when the power fails.
type cut int

const (
	dropped  cut = iota // nothing is there
	kept                // all is
	nameless            // bytes are, names are not
	emptied             // names are, bytes are not
	zeroed              // the same, but files have their sizes
	partial             // what happened first is, and of the next one half
	torn                // any of it, bytes by sectors
	cuts
)

var cutNames = [...]string{"dropped", "kept", "nameless", "emptied", "zeroed", "partial", "torn"}

func (c cut) String() string { return cutNames[c] }

// after returns what the disk has after a power cut.
func (d *disk) after(how cut, r *rand.Rand) *image {
	nodes := slices.Clone(d.nodes)
	own := owner(nodes)
	first := len(d.pending)
	if how == partial {
		first = r.IntN(first + 1)
	}
	for i := range d.pending {
		c := d.pending[i]
		isName := c.names != nil
		switch {
		case how == dropped, how == nameless && isName, how == emptied && !isName, how == partial && i > first,
			how == torn && r.IntN(2) == 0:
			continue
		case how == zeroed && !isName && c.data != nil:
			own(&c)
			nodes[c.node].size = max(nodes[c.node].size, c.at+int64(len(c.data)))
			continue
		}
		own(&c)
		var part func(int64) bool
		switch half := c.at/sector + int64(len(c.data))/sector/2; {
		case how == torn:
			part = func(int64) bool { return r.IntN(2) == 0 }
		case how == partial && i == first:
			part = func(s int64) bool { return s < half }
		}
		c.apply(nodes, part)
	}
	return &image{nodes}
}

// image is what a disk has.
type image struct{ nodes []*node }

// write makes the files of the image in dir, with other bytes in place of some.
func (m *image) write(dir string, replace func([]byte) []byte) error {
	return m.walk(0, dir, func(path string, n *node) error {
		if n.names != nil {
			return os.Mkdir(path, 0o700)
		}
		b := n.data
		if strings.HasSuffix(path, ".json") {
			b = replace(b)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil || n.size == int64(len(n.data)) {
			return err
		}
		return os.Truncate(path, n.size)
	})
}

// walk calls f for all that has a name in a folder, folders first.
func (m *image) walk(id int, dir string, f func(path string, n *node) error) error {
	for _, name := range slices.Sorted(maps.Keys(m.nodes[id].names)) {
		to, path := m.nodes[id].names[name], filepath.Join(dir, name)
		if err := f(path, m.nodes[to]); err != nil {
			return err
		}
		if err := m.walk(to, path, f); err != nil {
			return err
		}
	}
	return nil
}

// differs says in what the image is not what is in dir, without what is not recorded: sockets and shared memory.
func (m *image) differs(dir string) (list []string) {
	seen := make(map[string]bool)
	err := m.walk(0, dir, func(path string, n *node) error {
		seen[path] = true
		if n.names != nil {
			return nil
		}
		b, err := os.ReadFile(path)
		want := n.bytes()
		if err != nil || !bytes.Equal(b, want) {
			list = append(list, fmt.Sprintf("%s: %d bytes, %v, recorded %d", path, len(b), err, len(want)))
		}
		return nil
	})
	for name := range m.nodes[0].names {
		_ = filepath.WalkDir(filepath.Join(dir, name), func(path string, e fs.DirEntry, _ error) error {
			if !seen[path] && e.Type()&fs.ModeSocket == 0 && !strings.HasSuffix(path, "-shm") {
				list = append(list, path+": not recorded")
			}
			return nil
		})
	}
	if err != nil {
		list = append(list, err.Error())
	}
	return list
}
