package timeline

import (
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Area is GPUs x time, exact to the nanosecond. Ten thousand GPUs over a decade do not fit into nanoseconds of an
// int64, so seconds are counted apart.
type Area struct {
	Sec  int64 // GPU-seconds
	Nano int64 // GPU-nanoseconds beyond, 0 to 999,999,999
}

// nanos of a second.
const nanos = int64(time.Second)

// AreaOf returns n GPUs x d; d >= 0.
func AreaOf(n int, d time.Duration) Area {
	rest := int64(n) * (int64(d) % nanos)
	return Area{int64(n)*(int64(d)/nanos) + rest/nanos, rest % nanos}
}

// Plus returns a + b.
func (a Area) Plus(b Area) Area {
	sum := Area{a.Sec + b.Sec, a.Nano + b.Nano}
	if sum.Nano >= nanos {
		sum.Sec, sum.Nano = sum.Sec+1, sum.Nano-nanos
	}
	return sum
}

// Hours returns a in GPU-hours.
func (a Area) Hours() float64 { return (float64(a.Sec) + float64(a.Nano)/1e9) / 3600 }

// mostBuckets bounds the buckets of a picture: as many as it has pixels side by side, about.
const mostBuckets = 512

// buckets are areas of several rows over time. Where time goes beyond the last bucket, all get twice as wide.
type buckets struct {
	from  sched.Time
	width time.Duration
	rows  [][]Area // by row, then bucket

	joules   amounts // drawn meanwhile
	costs    costs
	extremes extremes
}

func newBuckets(from sched.Time, rows int) *buckets {
	return &buckets{from: from, width: time.Millisecond, rows: make([][]Area, rows)}
}

// add adds n from a to z to a row.
func (b *buckets) add(row int, a, z sched.Time, n int) {
	if n == 0 || z <= a {
		return
	}
	b.reach(z)
	list := b.rows[row]
	for i := int(a.Sub(b.from) / b.width); a < z; i++ {
		end := min(z, b.from.Add(time.Duration(i+1)*b.width))
		for len(list) <= i {
			list = append(list, Area{})
		}
		list[i] = list[i].Plus(AreaOf(n, end.Sub(a)))
		a = end
	}
	b.rows[row] = list
}

// reach makes buckets so wide that they reach to z.
func (b *buckets) reach(z sched.Time) {
	for z > b.from.Add(mostBuckets*b.width) {
		b.widen()
	}
}

// widen makes one bucket of two.
func (b *buckets) widen() {
	b.width *= 2
	for r, list := range b.rows {
		half := list[:0]
		for i := 0; i < len(list); i += 2 {
			sum := list[i]
			if i+1 < len(list) {
				sum = sum.Plus(list[i+1])
			}
			half = append(half, sum)
		}
		b.rows[r] = half
	}
}

// clone returns a copy that may be added to.
func (b *buckets) clone() *buckets {
	c := newBuckets(b.from, len(b.rows))
	c.width = b.width
	for r, list := range b.rows {
		c.rows[r] = append([]Area(nil), list...)
	}
	return c
}
