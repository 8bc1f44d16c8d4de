package speedup

import (
	"io"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/internal/csvtable"
	"github.com/trainyard/trainyard/sched"
)

// Throughputs are measured updates per second by global batch size and number of GPUs, packed: nodes make no
// difference. It is an App.
//
// Between is what it says about widths that were not measured. Batch sizes that were not measured are not possible, nor
// is accumulation.
type Throughputs struct {
	Name    string
	Batches []int       // ascending
	GPUs    []int       // ascending
	Rates   [][]float64 // updates per second by batch and GPUs; 0 = not possible
	Between Between
	Worth   Worth // nil = a single phase of 1 sample, whose progress is samples
}

// Between says how fast widths are that lie between two that were measured.
type Between uint8

// Ways to interpolate between widths.
const (
	Nothing Between = iota // they are not possible
	Linear                 // throughput is linear in the GPUs, where both neighbours are possible
)

var _ App = (*Throughputs)(nil)

// maxColumns bounds the widths of a table.
const maxColumns = 4096

// ReadThroughputs reads a table of updates per second. Its first column is global_batch_size, the others are headed by
// numbers of GPUs. Empty, 0 or nan means not possible. name is what errors call the file.
func ReadThroughputs(r io.Reader, name string) (*Throughputs, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	gpus, order, err := widthsOf(t)
	if err != nil {
		return nil, err
	}
	rows, err := batchRows(t, gpus, order)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b batchRow) int { return a.batch - b.batch })
	x := &Throughputs{Name: name, GPUs: gpus}
	possible := false
	for i, r := range rows {
		if i > 0 && r.batch == rows[i-1].batch {
			return nil, t.Fail("batch size %d twice, want it once", r.batch)
		}
		x.Batches, x.Rates = append(x.Batches, r.batch), append(x.Rates, r.rates)
		possible = possible || slices.Max(r.rates) > 0
	}
	if !possible {
		return nil, t.Fail("no updates per second above 0, want at least one")
	}
	return x, nil
}

// batchRow is a row of a table of updates per second.
type batchRow struct {
	batch int
	rates []float64 // by width; 0: not possible
}

// batchRows reads all rows of t: column order[i] is about gpus[i].
func batchRows(t table, gpus, order []int) (rows []batchRow, err error) {
	for {
		ok, err := t.Next()
		if err != nil || !ok {
			return rows, err
		}
		batch, err := t.count(0)
		if err != nil {
			return nil, err
		}
		r := batchRow{batch, make([]float64, len(gpus))}
		for i, at := range order {
			if cell := strings.ToLower(t.Row[at]); cell == "" || cell == "nan" {
				continue
			}
			if r.rates[i], err = t.number(at, 0); err != nil {
				return nil, err
			}
			if r.rates[i] > maxRate {
				return nil, t.Fail("%v updates per second on %d GPUs, want at most %v", r.rates[i], gpus[i],
					float64(maxRate))
			}
		}
		rows = append(rows, r)
	}
}

// maxRate bounds updates per second.
const maxRate = 1e9

// widthsOf returns the widths that the header names, ascending, and the column of each.
func widthsOf(t table) (gpus, order []int, err error) {
	if t.Header[0] != "global_batch_size" || len(t.Header) < 2 {
		return nil, nil, t.Fail("header %s, want global_batch_size and numbers of GPUs",
			csvtable.Quote(strings.Join(t.Header, ",")))
	}
	if len(t.Header) > maxColumns {
		return nil, nil, t.Fail("%d columns, want at most %d", len(t.Header), maxColumns)
	}
	for i, column := range t.Header[1:] {
		n, ok := parseCount(column)
		if !ok {
			return nil, nil, t.Fail("column %s, want a number of GPUs from 1 to %d", csvtable.Quote(column), maxCount)
		}
		at, twice := slices.BinarySearch(gpus, n)
		if twice {
			return nil, nil, t.Fail("%d GPUs twice, want them once", n)
		}
		gpus, order = slices.Insert(gpus, at, n), slices.Insert(order, at, i+1)
	}
	return gpus, order, nil
}

// oneSample is the phase of an application of which nothing but its throughput is known.
var oneSample = Samples{1}

func (x *Throughputs) worth() Worth {
	if x.Worth == nil {
		return oneSample
	}
	return x.Worth
}

// Sizes returns the progress that makes up each phase.
func (x *Throughputs) Sizes() []float64 { return x.worth().Sizes() }

// Rate returns the updates per second with a batch size on so many GPUs; 0 = not possible.
func (x *Throughputs) Rate(batch, gpus int) float64 {
	b, found := slices.BinarySearch(x.Batches, batch)
	if !found {
		return 0
	}
	i, found := slices.BinarySearch(x.GPUs, gpus)
	if found {
		return x.Rates[b][i]
	}
	if x.Between != Linear || i == 0 || i == len(x.GPUs) || x.Rates[b][i-1] == 0 || x.Rates[b][i] == 0 {
		return 0
	}
	return mix(x.Rates[b][i-1], x.Rates[b][i], share(float64(gpus), float64(x.GPUs[i-1]), float64(x.GPUs[i])))
}

// Speed returns the progress per second; without w.Batch that of Best.
func (x *Throughputs) Speed(phase int, w Way) float64 {
	if w.Batch == 0 {
		_, speed := x.Best(phase, w.GPUs, w.Nodes, sched.BatchRange{})
		return speed
	}
	if w.Accum > 1 {
		return 0
	}
	return x.worth().Gain(phase, w.Batch) * x.Rate(w.Batch, w.GPUs)
}

// Best returns the fastest measured batch size within limits.
func (x *Throughputs) Best(phase, gpus, nodes int, limits sched.BatchRange) (w Way, speed float64) {
	if gpus < 1 {
		return Way{}, 0
	}
	for _, batch := range x.Batches {
		over := limits.Max > 0 && batch > int(limits.Max) || limits.PerGPU > 0 &&
			ceilDiv(batch, gpus) > int(limits.PerGPU)
		if batch < int(limits.Min) || over {
			continue
		}
		if s := x.Speed(phase, Way{GPUs: gpus, Nodes: nodes, Batch: batch}); s > speed {
			w, speed = Way{gpus, nodes, batch, 1}, s
		}
	}
	return w, speed
}

// Samples is a Worth that counts samples, whatever the batch size: so many in each phase.
type Samples []float64

var _ Worth = Samples(nil)

// Sizes returns s.
func (s Samples) Sizes() []float64 { return s }

// Gain returns batch.
func (s Samples) Gain(_, batch int) float64 { return float64(batch) }
