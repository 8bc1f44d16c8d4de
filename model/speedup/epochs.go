package speedup

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// TargetRun says in which epoch a training run first met a target.
type TargetRun struct {
	Dataset, Network string
	Batch            int
	Target           float64
	Epoch            float64 // 0 = never
}

// ReadTargetRuns reads a table of runs with the columns, in any order,
//
//	dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch
//
// of which optimizer, learning_rate and run are read over. A target_epoch of nan means never. name is what errors call
// the file.
func ReadTargetRuns(r io.Reader, name string) ([]TargetRun, error) {
	t, err := openTable(r, name)
	if err != nil {
		return nil, err
	}
	at, err := t.only("dataset", "network", "batch_size", "target_metric", "target_epoch", "optimizer", "learning_rate",
		"run")
	if err != nil {
		return nil, err
	}
	var runs []TargetRun
	for {
		ok, err := t.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		run := TargetRun{Dataset: strings.Clone(t.Row[at[0]]), Network: strings.Clone(t.Row[at[1]])}
		if run.Batch, err = t.count(at[2]); err != nil {
			return nil, err
		}
		if run.Target, err = t.number(at[3], -maxValue); err != nil {
			return nil, err
		}
		if !strings.EqualFold(t.Row[at[4]], "nan") {
			epoch, err := t.count(at[4])
			if err != nil {
				return nil, err
			}
			run.Epoch = float64(epoch)
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, t.Fail("no rows, want at least one run")
	}
	return runs, nil
}

// Epochs says how many epochs it takes to reach a target by batch size: what a batch size costs in samples. It is a
// Worth of one phase, which ends at the target and whose unit is samples at the best of the batch sizes. Epochs are
// linear between batch sizes; there is no way at one that never gets there, nor next to it, nor beyond the measured
// ones.
type Epochs struct {
	Batches []int
	Epochs  []float64 // by batch; 0 = never
	Samples float64   // of an epoch, > 0
}

var _ Worth = (*Epochs)(nil)

// EpochsTo returns the medians, over those runs on dataset and network that met the target, of the epochs that they
// took, by batch size. Epochs have so many samples. It is an error if no run has that target, or none met it.
func EpochsTo(runs []TargetRun, dataset, network string, target, samples float64) (*Epochs, error) {
	if !(samples > 0 && samples <= maxValue) {
		return nil, fmt.Errorf("speedup: %v samples in an epoch, want > 0", samples)
	}
	met := make(map[int][]float64) // by batch size; empty = never
	for _, run := range runs {
		if run.Dataset != dataset || run.Network != network || run.Target != target {
			continue
		}
		if _, seen := met[run.Batch]; !seen {
			met[run.Batch] = nil
		}
		if run.Epoch > 0 {
			met[run.Batch] = append(met[run.Batch], run.Epoch)
		}
	}
	e := &Epochs{Samples: samples}
	for batch := range met {
		e.Batches = append(e.Batches, batch)
	}
	slices.Sort(e.Batches)
	reached := false
	for _, batch := range e.Batches {
		m := median(met[batch])
		e.Epochs = append(e.Epochs, m)
		reached = reached || m > 0
	}
	if !reached {
		return nil, fmt.Errorf("speedup: of the runs of %s on %s, at %d batch sizes with the target %v, none met it, "+
			"want one that did",
			network, dataset, len(e.Batches), target)
	}
	return e, nil
}

// median returns the middle of x, which it sorts, or the mean of the two middle ones; 0 of nothing.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// To returns the epochs that it takes with a batch size; 0 = it does not get there.
func (e *Epochs) To(batch int) float64 {
	i, found := slices.BinarySearch(e.Batches, batch)
	switch {
	case found:
		return e.Epochs[i]
	case i == 0 || i == len(e.Batches) || e.Epochs[i-1] == 0 || e.Epochs[i] == 0:
		return 0
	}
	return mix(e.Epochs[i-1], e.Epochs[i], share(float64(batch), float64(e.Batches[i-1]), float64(e.Batches[i])))
}

// fewest returns the least epochs at any batch size.
func (e *Epochs) fewest() float64 {
	least := 0.0
	for _, n := range e.Epochs {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Sizes returns the samples that it takes at the best batch size.
func (e *Epochs) Sizes() []float64 { return []float64{e.fewest() * e.Samples} }

// Gain returns what an update is worth: its samples, times how many fewer epochs it takes at the best batch size.
func (e *Epochs) Gain(_, batch int) float64 {
	n := e.To(batch)
	if n == 0 {
		return 0
	}
	return float64(batch) * e.fewest() / n
}
