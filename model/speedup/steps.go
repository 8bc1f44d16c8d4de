package speedup

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// Steps are measured times of an optimizer step by placement, or by nodes and GPUs, and by samples on each GPU. It is
// a Timer.
//
// A placement is the number of GPUs on each node, in the order of the nodes, which form a ring: 1,4 and 4,1 are the
// same. Times of a placement that was measured are linear in the samples on each GPU. For others they are interpolated
// between means over the placements of as many nodes and GPUs, and what was measured by nodes and GPUs alone: linear in
// the samples (a curve that ends before others goes on as its last piece, up to twice its end), then in the GPUs on so
// many nodes; where nothing was measured on so many nodes, linear in the nodes between points of as many GPUs per node.
// More nodes than were measured count as the most that were. Beyond the fewest and most samples of any placement, and
// the GPUs that were measured, times are unknown.
//
// Deviation: the artifact of Pollux triangulates the points instead (Delaunay), which depends on how ties between
// points of a grid are broken. Of the rules that come near, this one predicts layers of nodes that are left out of the
// published tables a little better than one that compares equal numbers of GPUs (by 4 % to 8 % of its error, in five
// tables of six).
//
// Source: specification of BOA, 3.5.
type Steps struct {
	exact map[string]stepCurve // by smallest rotation of the placement, a byte for each node
	nodes []int                // measured numbers of nodes, ascending
	grid  map[int]layer        // by number of nodes
	width int                  // most GPUs of a measured placement on one node
	least int                  // fewest samples on a GPU of any measured placement
	most  int                  // most samples on a GPU of any measured placement
}

// layer holds what was measured on one number of nodes.
type layer struct {
	gpus   []int // ascending
	curves []stepCurve
}

// stepCurve gives times by samples on each GPU, ascending.
type stepCurve struct {
	local      []float64
	step, sync []float64 // seconds
}

// ReadSteps reads dir/placements.csv and dir/scalability.csv of fsys, with kind behind a hyphen in their names unless
// it is "": placements-aws.csv. Their columns, in any order:
//
//	placement,local_bsz,step_time,sync_time
//	num_nodes,num_replicas,local_bsz,step_time,sync_time
//
// A placement is a digit from 1 to 9 for each node. Times are in seconds; sync_time is the part of step_time spent on
// synchronisation. A point of the second file given more than once counts as the mean.
func ReadSteps(fsys fs.FS, dir, kind string) (*Steps, error) {
	if kind != "" {
		kind = "-" + kind
	}
	b := stepBuilder{exact: make(map[string]map[int]*stepSum), grid: make(map[[2]int]map[int]*stepSum)}
	if err := readFile(fsys, path.Join(dir, "placements"+kind+".csv"), b.placements); err != nil {
		return nil, err
	}
	if err := readFile(fsys, path.Join(dir, "scalability"+kind+".csv"), b.scalability); err != nil {
		return nil, err
	}
	return b.build(), nil
}

func readFile(fsys fs.FS, name string, read func(table) error) error {
	f, err := fsys.Open(name)
	if err != nil {
		return fmt.Errorf("speedup: %w", err)
	}
	defer f.Close()
	return readFrom(f, name, read)
}

func readFrom(r io.Reader, name string, read func(table) error) error {
	t, err := openTable(r, name)
	if err != nil {
		return err
	}
	return read(t)
}

// stepBuilder collects points by samples on each GPU.
type stepBuilder struct {
	exact map[string]map[int]*stepSum
	grid  map[[2]int]map[int]*stepSum // by nodes and GPUs
}

type stepSum struct {
	n          int
	step, sync float64
}

func (s *stepSum) add(step, sync float64) { s.n, s.step, s.sync = s.n+1, s.step+step, s.sync+sync }

func (b *stepBuilder) placements(t table) error {
	at, err := t.only("placement", "local_bsz", "step_time", "sync_time")
	if err != nil {
		return err
	}
	for {
		ok, err := t.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		placement, ok := parsePlacement(t.Row[at[0]])
		if !ok {
			return t.Fail("placement %s, want a digit from 1 to 9 for each node, at most %d",
				csvtable.Quote(t.Row[at[0]]), maxNodes)
		}
		local, step, sync, err := stepFields(t, at[1:])
		if err != nil {
			return err
		}
		key := string(smallestRotation(placement))
		if b.exact[key][local] != nil {
			return t.Fail("placement %s with %d samples on each GPU twice, want it once", t.Row[at[0]], local)
		}
		sum(b.exact, key, local).add(step, sync)
		sum(b.grid, [2]int{len(placement), total(placement)}, local).add(step, sync)
	}
	if len(b.exact) == 0 {
		return t.Fail("no rows, want at least one placement")
	}
	return nil
}

func (b *stepBuilder) scalability(t table) error {
	at, err := t.only("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
	if err != nil {
		return err
	}
	for {
		ok, err := t.Next()
		if !ok || err != nil {
			return err
		}
		nodes, err := t.count(at[0])
		if err != nil {
			return err
		}
		gpus, err := t.count(at[1])
		if err != nil {
			return err
		}
		if gpus < nodes {
			return t.Fail("%d GPUs on %d nodes, want at least one on each", gpus, nodes)
		}
		local, step, sync, err := stepFields(t, at[2:])
		if err != nil {
			return err
		}
		sum(b.grid, [2]int{nodes, gpus}, local).add(step, sync)
	}
}

// stepFields reads local_bsz, step_time and sync_time.
func stepFields(t table, at []int) (local int, step, sync float64, err error) {
	if local, err = t.count(at[0]); err != nil {
		return 0, 0, 0, err
	}
	if step, err = t.number(at[1], minStep); err != nil {
		return 0, 0, 0, err
	}
	if sync, err = t.number(at[2], 0); err != nil {
		return 0, 0, 0, err
	}
	if step > maxStep || sync > step {
		return 0, 0, 0, t.Fail("step of %v s with %v s of synchronisation, want at most %v s, synchronisation included",
			step, sync, float64(maxStep))
	}
	return local, step, sync, nil
}

// Limits of a measured step, in seconds, and of the nodes of a placement.
const (
	minStep  = 1e-9
	maxStep  = 1e9
	maxNodes = 64
)

func sum[K comparable](m map[K]map[int]*stepSum, key K, local int) *stepSum {
	if m[key] == nil {
		m[key] = make(map[int]*stepSum)
	}
	if m[key][local] == nil {
		m[key][local] = &stepSum{}
	}
	return m[key][local]
}

// build sorts what was collected.
func (b *stepBuilder) build() *Steps {
	s := &Steps{exact: make(map[string]stepCurve, len(b.exact)), grid: make(map[int]layer)}
	for key, points := range b.exact {
		c := curveOf(points)
		least, most := int(c.local[0]), int(c.local[len(c.local)-1])
		if s.least == 0 || least < s.least {
			s.least = least
		}
		s.width, s.most = max(s.width, int(slices.Max([]byte(key)))), max(s.most, most)
		s.exact[key] = c
	}
	var points [][2]int
	for p := range b.grid {
		points = append(points, p)
	}
	slices.SortFunc(points, func(p, q [2]int) int { return slices.Compare(p[:], q[:]) })
	for _, p := range points {
		nodes, gpus := p[0], p[1]
		l := s.grid[nodes]
		if len(l.gpus) == 0 {
			s.nodes = append(s.nodes, nodes)
		}
		s.grid[nodes] = layer{append(l.gpus, gpus), append(l.curves, curveOf(b.grid[p]))}
	}
	return s
}

func curveOf(points map[int]*stepSum) stepCurve {
	var locals []int
	for local := range points {
		locals = append(locals, local)
	}
	slices.Sort(locals)
	var c stepCurve
	for _, local := range locals {
		p := points[local]
		c.local = append(c.local, float64(local))
		c.step, c.sync = append(c.step, p.step/float64(p.n)), append(c.sync, p.sync/float64(p.n))
	}
	return c
}

// parsePlacement reads one digit for each node.
func parsePlacement(s string) (placement []byte, ok bool) {
	if s == "" || len(s) > maxNodes {
		return nil, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d < 1 || d > 9 {
			return nil, false
		}
		placement = append(placement, d)
	}
	return placement, true
}

// smallestRotation turns the ring of nodes so that the placement comes first among its rotations. It works in place.
func smallestRotation(placement []byte) []byte {
	n := len(placement)
	best := 0
	for r := 1; r < n; r++ {
		for i := range n {
			a, b := placement[(r+i)%n], placement[(best+i)%n]
			if a != b {
				if a < b {
					best = r
				}
				break
			}
		}
	}
	if best > 0 {
		slices.Reverse(placement[:best])
		slices.Reverse(placement[best:])
		slices.Reverse(placement)
	}
	return placement
}

func total(placement []byte) (gpus int) {
	for _, g := range placement {
		gpus += int(g)
	}
	return gpus
}
