package pollux

import "math"

// Measured are measured steps.
type Measured interface {
	Steps
	// Measured reports whether Placed needs not interpolate between placements.
	Measured(placement []int) bool
	// Points calls yield with all points to interpolate between, times in seconds.
	Points(yield func(nodes, gpus, perGPU int, step, sync float64))
}

// triangulated is what Triangulate returns.
type triangulated struct {
	Measured
	mesh *Mesh
}

// Triangulate returns the steps of the released simulator: those of m on placements that were measured, and those of
// the Mesh over its points elsewhere.
func Triangulate(m Measured) Steps {
	var points []Point
	m.Points(func(nodes, gpus, perGPU int, step, sync float64) {
		points = append(points, Point{nodes, gpus, perGPU, step, sync})
	})
	return triangulated{m, NewMesh(points)}
}

// Placed is that of the measurements where they have the placement, else that of the mesh.
func (t triangulated) Placed(placement []int, perGPU int) (step, sync float64, ok bool) {
	if t.Measured.Measured(placement) {
		return t.Measured.Placed(placement, perGPU)
	}
	gpus := 0
	for _, g := range placement {
		gpus += g
	}
	return t.mesh.At(len(placement), gpus, perGPU)
}

// Point is a measured step.
type Point struct {
	Nodes, GPUs, PerGPU int
	Step, Sync          float64 // seconds
}

// Mesh interpolates between points as the released simulator does where a placement was not measured: linearly inside
// the simplices of the Delaunay triangulation over nodes, GPUs and samples on each GPU, unscaled. It remembers what it
// was asked.
//
// The simplex around a place is found without the others: its corners are the points whose weights w >= 0 reach the
// place, sum w p = q, sum w = 1, with the least sum of w |p-q|^2. That is a linear programme of four rows.
//
// Measured points form a grid, on which boxes and prisms have many triangulations that are all Delaunay. Ours is the
// one that a small term (see lift) makes unique; the released one depends on the insides of the Qhull library.
type Mesh struct {
	points   []Point
	maxNodes int
	known    map[[3]int]meshStep
}

type meshStep struct {
	step, sync float64
	ok         bool
}

// NewMesh returns the mesh over points, which it keeps. More nodes than any point has count as the most that one has.
func NewMesh(points []Point) *Mesh {
	m := &Mesh{points: points, known: make(map[[3]int]meshStep)}
	for _, p := range points {
		m.maxNodes = max(m.maxNodes, p.Nodes)
	}
	return m
}

// At returns the seconds of a step and of its synchronisation; false outside the convex hull of the points.
func (m *Mesh) At(nodes, gpus, perGPU int) (step, sync float64, ok bool) {
	q := [3]int{min(nodes, m.maxNodes), gpus, perGPU}
	s, known := m.known[q]
	if !known {
		s = m.interpolate(q)
		m.known[q] = s
	}
	return s.step, s.sync, s.ok
}

func (m *Mesh) interpolate(q [3]int) (s meshStep) {
	corners, weights, ok := m.simplex(q)
	if !ok {
		return s
	}
	s.ok = true
	for i, c := range corners {
		if c >= 0 {
			s.step += float64(weights[i] * m.points[c].Step)
			s.sync += float64(weights[i] * m.points[c].Sync)
		}
	}
	return s
}

// column returns the column of point i in the linear programme for q, and its cost.
func (m *Mesh) column(i int, q [3]int) (col [4]float64, cost float64) {
	p := &m.points[i]
	x, y, z := float64(p.Nodes-q[0]), float64(p.GPUs-q[1]), float64(p.PerGPU-q[2])
	return [4]float64{x, y, z, 1}, float64(x*x) + float64(y*y) + float64(z*z) + lift(p)
}

// lift is the term that decides between triangulations of equal right, far below a difference of squares of whole
// numbers: of a rectangle in two of the axes, that diagonal is drawn that joins small with small for GPUs and samples,
// small with large else. For nodes and samples this sign is the one with which all published runs of Tiresias at load 1
// come out to the second; the others are those with which fewest jobs of Optimus differ, which weighs interpolated
// times against each other thousands of times and needs more than one rule can say.
func lift(p *Point) float64 {
	return 1e-7 * float64(p.Nodes*p.PerGPU+p.Nodes*p.GPUs-p.GPUs*p.PerGPU)
}

// program is the linear programme for one place.
type program struct {
	mesh    *Mesh
	q       [3]int
	inverse [4][4]float64 // of the basis
	cost    [4]float64    // of its columns
	corners [4]int        // points in the basis; below 0 what stands in before there is a point
	weights [4]float64    // of the corners, >= 0
}

// artificial is the cost of not being a point.
const artificial = 1e15

// simplex solves the linear programme by the simplex method. It returns false if q is outside the hull of the points.
func (m *Mesh) simplex(q [3]int) (corners [4]int, weights [4]float64, ok bool) {
	p := program{mesh: m, q: q}
	for i := range p.corners {
		p.corners[i], p.cost[i], p.inverse[i][i] = -1-i, artificial, 1
	}
	p.weights[3] = 1
	for steps := 0; ; steps++ {
		enter := p.entering(steps > steepest)
		if enter < 0 {
			break
		}
		if !p.pivot(enter) {
			return p.corners, p.weights, false
		}
	}
	for r, c := range p.corners {
		if c < 0 && p.weights[r] > 1e-9 {
			return p.corners, p.weights, false
		}
	}
	return p.corners, p.weights, true
}

// steepest is how many steps take the best column. After them Bland's rule, the first that is good, makes sure of an
// end.
const steepest = 100

// entering returns a point that lowers the sum, or -1.
func (p *program) entering(first bool) int {
	var price [4]float64
	for c := range price {
		for r := range p.cost {
			price[c] += float64(p.cost[r] * p.inverse[r][c])
		}
	}
	enter, least := -1, 0.0
	for i := range p.mesh.points {
		col, reduced := p.mesh.column(i, p.q)
		scale := reduced
		for r := range col {
			x := float64(price[r] * col[r])
			reduced -= x
			scale += math.Abs(x)
		}
		if reduced < -1e-13*scale-1e-9 && (enter < 0 || reduced < least) {
			if enter, least = i, reduced; first {
				break
			}
		}
	}
	return enter
}

// pivot brings a point into the basis. It returns false if no corner can leave, which rounding alone can cause.
func (p *program) pivot(enter int) bool {
	col, cost := p.mesh.column(enter, p.q)
	var d [4]float64
	for r := range d {
		for c := range col {
			d[r] += float64(p.inverse[r][c] * col[c])
		}
	}
	leave, least := -1, math.Inf(1)
	for r := range d {
		if d[r] <= 1e-9 {
			continue
		}
		ratio := p.weights[r] / d[r]
		if ratio < least-1e-12 || ratio < least+1e-12 && p.corners[r] < p.corners[leave] {
			leave, least = r, ratio
		}
	}
	if leave < 0 {
		return false
	}
	for c := range col {
		p.inverse[leave][c] /= d[leave]
	}
	p.weights[leave] /= d[leave]
	for r := range d {
		if r == leave {
			continue
		}
		for c := range col {
			p.inverse[r][c] -= float64(d[r] * p.inverse[leave][c])
		}
		p.weights[r] = max(0, p.weights[r]-float64(d[r]*p.weights[leave]))
	}
	p.corners[leave], p.cost[leave] = enter, cost
	return true
}
