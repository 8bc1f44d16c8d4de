package speedup

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Validation are measured statistics of the gradient by epoch and batch size, and with them what an update is worth. It
// is a Worth whose progress counts updates at its smallest batch size, M0: an update at batch size M is worth the gain
//
//	(var + sqr) / (var/(M/M0) + sqr)
//
// where sqr is the squared norm of the gradient and var the variance of a gradient at M0. Both are linear in the batch
// size between measured ones and constant beyond. An epoch ends when the progress reaches the least over the batch
// sizes of what was measured.
//
// Source: specification of BOA, 3.5.
type Validation struct {
	batches []int // ascending
	sizes   []float64
	sqr     [][]float64 // by batch and epoch
	vari    [][]float64 // likewise
	updates [][]float64 // likewise: so many up to the end of the epoch
}

var _ Worth = (*Validation)(nil)

// ReadValidation reads all dir/validation-B.csv of fsys, B being the batch size. Each has the columns, in any order
//
//	progress,iteration,metric,grad_sqr,grad_var
//
// and a row for each epoch with what was reached at its end. metric is read over. Files of more epochs than others are
// cut.
func ReadValidation(fsys fs.FS, dir string) (*Validation, error) {
	const prefix, suffix = "validation-", ".csv"
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("speedup: %w", err)
	}
	var runs []run
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix) {
			continue
		}
		file := path.Join(dir, name)
		batch, ok := parseCount(name[len(prefix) : len(name)-min(len(name)-len(prefix), len(suffix))])
		if !ok {
			return nil, fmt.Errorf("speedup: %s: batch size in its name, want a whole number from 1 to %d", file,
				maxCount)
		}
		r := run{batch: batch}
		if err := readFile(fsys, file, r.read); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("speedup: %s: no %sB%s, want one for each measured batch size B", dir, prefix, suffix)
	}
	return validationOf(dir, runs)
}

// run is a training at one batch size.
type run struct {
	batch                        int
	progress, sqr, vari, updates []float64 // by epoch
}

func (r *run) read(t table) error {
	at, err := t.only("progress", "grad_sqr", "grad_var", "iteration", "metric")
	if err != nil {
		return err
	}
	last, updates := 0.0, 0.0
	for {
		ok, err := t.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		var x [4]float64
		for i := range x {
			if x[i], err = t.number(at[i], 0); err != nil {
				return err
			}
		}
		switch {
		case x[0] <= last:
			return t.Fail("progress %v behind %v, want it to rise", x[0], last)
		case x[3] < updates:
			return t.Fail("iteration %v behind %v, want it not to fall", x[3], updates)
		case x[1]+x[2] <= 0:
			return t.Fail("gradient without norm and variance, want one of them > 0")
		case x[1] > maxGradient || x[2] > maxGradient:
			return t.Fail("gradient of norm %v and variance %v, want at most %v", x[1], x[2], maxGradient)
		}
		last, updates = x[0], x[3]
		r.progress, r.updates = append(r.progress, last), append(r.updates, updates)
		r.sqr, r.vari = append(r.sqr, x[1]), append(r.vari, x[2])
	}
	if len(r.progress) == 0 {
		return t.Fail("no rows, want one for each epoch")
	}
	return nil
}

// maxGradient keeps sums and products of statistics inside a float64.
const maxGradient = 1e100

func validationOf(dir string, runs []run) (*Validation, error) {
	slices.SortFunc(runs, func(a, b run) int { return a.batch - b.batch })
	epochs := len(runs[0].progress)
	for _, r := range runs {
		epochs = min(epochs, len(r.progress))
	}
	v := &Validation{}
	for i, r := range runs {
		if i > 0 && r.batch == runs[i-1].batch {
			return nil, fmt.Errorf("speedup: %s: two files of batch size %d, want one", dir, r.batch)
		}
		v.batches = append(v.batches, r.batch)
		v.sqr, v.vari, v.updates = append(v.sqr, r.sqr[:epochs]), append(v.vari, r.vari[:epochs]),
			append(v.updates, r.updates[:epochs])
	}
	before := 0.0
	for e := range epochs {
		end := runs[0].progress[e]
		for _, r := range runs {
			end = min(end, r.progress[e])
		}
		v.sizes = append(v.sizes, end-before)
		before = end
	}
	return v, nil
}

// Sizes returns the progress of each epoch.
func (v *Validation) Sizes() []float64 { return v.sizes }

// Batches returns the measured batch sizes, ascending; the first is M0. The slice is not to be changed.
func (v *Validation) Batches() []int { return v.batches }

// Gradient returns the squared norm and the variance, at batch size M0, of the gradient in an epoch when training with
// batch size batch.
func (v *Validation) Gradient(epoch, batch int) (sqr, variance float64) {
	return v.between(v.sqr, epoch, batch), v.between(v.vari, epoch, batch)
}

// Updates returns how many updates a training with batch size batch makes up to the end of an epoch.
func (v *Validation) Updates(epoch, batch int) float64 { return v.between(v.updates, epoch, batch) }

// between interpolates over batch sizes in a table by batch and epoch.
func (v *Validation) between(x [][]float64, epoch, batch int) float64 {
	i, found := slices.BinarySearch(v.batches, batch)
	switch {
	case found || i == 0:
		return x[i][epoch]
	case i == len(v.batches):
		return x[i-1][epoch]
	}
	return mix(x[i-1][epoch], x[i][epoch], share(float64(batch), float64(v.batches[i-1]), float64(v.batches[i])))
}

// Gain returns what an update at batch size batch is worth in an epoch, in updates at M0.
func (v *Validation) Gain(epoch, batch int) float64 {
	sqr, variance := v.Gradient(epoch, batch)
	return Gain(sqr, variance, float64(batch)/float64(v.batches[0]))
}
