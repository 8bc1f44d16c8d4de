package elastic

import "math"

// none is P where a division is not feasible. Sums of it and factors stay far below any feasible one.
const none = math.MinInt64 / 2

// Table is the dynamic programme as published: P(j, K) is the largest sum of scaling factors of the first j jobs on at
// most K GPUs, each of them at a width that is possible for it.
//
//	P(0, K) = 0
//	P(j, K) = max of P(j-1, K-k) + S(j, k) over the possible widths k <= K of job j
//
// The zero value is ready for use. A Table keeps its memory: filling one again allocates only if it has never been as
// large. It takes 8 bytes for each pair of job and GPU, and O(jobs × GPUs × widths) steps.
//
// Source: specification, section 3.1; heyfey/vodascheduler, ffdl_optimizer.go, which ignores minima, cannot leave GPUs
// unused unless every job is at its maximum, and panics where nothing is feasible.
type Table struct {
	jobs []Job
	gpus int
	rows []int64 // row j from j*(gpus+1) on, in units
	gain []int64 // scratch: units of one job by width, padded
}

// Fill computes P for all jobs and for 0..gpus GPUs. The jobs must stay as they are while the Table is read.
func (t *Table) Fill(jobs []Job, gpus int) {
	checkSize(jobs, gpus)
	t.jobs, t.gpus = jobs, gpus
	size := (len(jobs) + 1) * (gpus + 1)
	if cap(t.rows) < size {
		t.rows = make([]int64, size)
	}
	t.rows = t.rows[:size]
	clear(t.row(0))
	from, to := 0, 0 // row is none below from, and flat from to on
	for j := range jobs {
		least, ok := jobs[j].Least()
		if !ok || from+least > gpus {
			fillNone(t.rows[(j+1)*(gpus+1):])
			return
		}
		from, to = t.fillRow(j, from, to)
	}
}

// fillRow computes row j+1 from row j, which is none below from and flat from to on, and returns the same of the new
// row.
func (t *Table) fillRow(j, from, to int) (int, int) {
	job, prev, row := &t.jobs[j], t.row(j), t.row(j+1)
	least, _ := job.Least()
	most := min(job.most(), t.gpus-from)
	t.gain = t.gain[:0]
	for k := least; k <= most; k++ {
		s := unitsOf(job.S[k])
		if s == 0 {
			s = none
		}
		t.gain = append(t.gain, s)
	}
	for len(t.gain)%stride != 0 {
		t.gain = append(t.gain, none)
	}
	fillNone(row)
	upTo := min(to+most, t.gpus)
	relax(row[from+least:upTo+1], prev[from:], t.gain)
	for k := upTo + 1; k <= t.gpus; k++ {
		row[k] = row[upTo]
	}
	return from + least, upTo
}

// stride is how many widths relax looks at together, tile how many cells, so that both rows stay in the nearest cache.
const (
	stride = 4
	tile   = 1 << 10
)

// relax sets row[i] to the largest of prev[i-k] + gain[k], 0 <= k <= i. len(gain) is a multiple of stride, prev is at
// least as long as row.
func relax(row, prev, gain []int64) {
	for from := 0; from < len(row); from += tile {
		relaxTile(row[:min(from+tile, len(row))], prev, gain, from)
	}
}

// relaxTile is relax for the cells from from on. It is where all the time goes: the sums that four widths add to one
// cell of prev stay in registers, and integers have a maximum without branches.
func relaxTile(row, prev, gain []int64, from int) {
	for k := 0; k < len(gain) && k < len(row); k += stride {
		g0, g1, g2, g3 := gain[k], gain[k+1], gain[k+2], gain[k+3]
		first := max(from, k)
		p1, p2, p3 := at(prev, first-k-1), at(prev, first-k-2), at(prev, first-k-3)
		p := prev[first-k : len(row)-k]
		r := row[first:]
		r = r[:len(p)]
		for i, p0 := range p {
			r[i] = max(r[i], p0+g0, p1+g1, p2+g2, p3+g3)
			p1, p2, p3 = p0, p1, p2
		}
	}
}

// at returns row[i], none before the first.
func at(row []int64, i int) int64 {
	if i < 0 {
		return none
	}
	return row[i]
}

func fillNone(row []int64) {
	for i := range row {
		row[i] = none
	}
}

// feasible distinguishes a sum of factors from none plus factors.
func feasible(units int64) bool { return units >= 0 }

func (t *Table) row(j int) []int64 { return t.rows[j*(t.gpus+1) : (j+1)*(t.gpus+1)] }

// At returns P(j, k) for the first j jobs, 0 <= j <= len(jobs), on k GPUs, 0 <= k <= gpus; false if these jobs cannot
// all run there. P never falls with k.
func (t *Table) At(j, k int) (sum float64, ok bool) {
	p := t.row(j)[k]
	if !feasible(p) {
		return math.Inf(-1), false
	}
	return factorOf(p), true
}

// Widths appends to dst the widths of all jobs that reach P(J, k), in the order of the jobs; false, and dst as it was,
// if they cannot all run. Ties go to the smaller width of the later job: of all best divisions this is the one whose
// last job is narrowest, and so on towards the first.
func (t *Table) Widths(dst []int, k int) ([]int, bool) {
	J := len(t.jobs)
	if !feasible(t.row(J)[k]) {
		return dst, false
	}
	from := len(dst)
	for range J {
		dst = append(dst, 0)
	}
	for j := J; j > 0; j-- {
		width := t.choice(j, k)
		dst[from+j-1] = width
		k -= width
	}
	return dst, true
}

// choice returns the smallest width of the jth job, counted from 1, that reaches P(j, k). Finding it again is cheaper
// than having kept it.
func (t *Table) choice(j, k int) int {
	job, prev, p := &t.jobs[j-1], t.row(j-1), t.row(j)[k]
	width, _ := job.Least()
	for prev[k-width]+unitsOf(job.S[width]) != p {
		width = job.next(width)
	}
	return width
}
