package speedup

import (
	"fmt"
	"io/fs"

	"github.com/trainyard/trainyard/sched"
)

// Profile is an application of Pollux (OSDI'21) as it was measured: the truth of its simulator.
//
// An update of accum micro-batches takes the time of a step and accum-1 times that of its computation. Batch sizes go
// from the smallest to the largest with measured statistics, those on each GPU as far as steps were measured, but for
// publishedPerGPU. Batches are even; one GPU makes at least two micro-batches of more than the smallest batch size.
//
// Published set-ups keep the application ncf on one GPU. That is a limit of theirs, which is not in here: set
// Limits.MaxGPUs.
//
// Source: specification of BOA, 3.5 and 5.2.
type Profile struct {
	Trainer
	Steps      *Steps      // is Trainer.Time
	Validation *Validation // is Trainer.Worth
}

// publishedPerGPU bounds the samples on each GPU below what was measured, by application.
var publishedPerGPU = map[string]int{"yolov3": 8}

// NewProfile returns the application called name with measured steps and statistics.
func NewProfile(name string, steps *Steps, validation *Validation) *Profile {
	batches := validation.Batches()
	least, most := steps.PerGPU()
	if n, ok := publishedPerGPU[name]; ok && n >= least {
		most = min(most, n)
	}
	return &Profile{
		Trainer: Trainer{Name: name, Time: steps, Worth: validation, Limits: Limits{
			Start: batches[0], Max: batches[len(batches)-1], MinPerGPU: least, MaxPerGPU: most,
			Accumulate: true, Probe: true, Even: true,
		}},
		Steps: steps, Validation: validation,
	}
}

// ReadProfile reads the application in folder name of fsys: see ReadSteps, for kind too, and ReadValidation.
func ReadProfile(fsys fs.FS, name, kind string) (*Profile, error) {
	steps, err := ReadSteps(fsys, name, kind)
	if err != nil {
		return nil, err
	}
	validation, err := ReadValidation(fsys, name)
	if err != nil {
		return nil, err
	}
	return NewProfile(name, steps, validation), nil
}

// ReadProfiles reads the applications in all folders of fsys, in order of their names. Files next to the folders are
// read over.
func ReadProfiles(fsys fs.FS, kind string) ([]*Profile, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("speedup: %w", err)
	}
	var profiles []*Profile
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		p, err := ReadProfile(fsys, entry.Name(), kind)
		if err != nil {
			return nil, err
		}
		profiles = append(profiles, p)
	}
	if len(profiles) == 0 {
		return nil, fmt.Errorf("speedup: no folders, want one for each application")
	}
	return profiles, nil
}

// UpdatePlaced is Update on an exact placement, the number of GPUs on each node, zeros left out. w.GPUs and w.Nodes
// follow from it; w.Batch is > 0.
func (p *Profile) UpdatePlaced(placement []int, w Way) (seconds float64, batch int) {
	w.GPUs, w.Nodes = count(placement)
	perGPU, accum, batch, ok := p.Limits.split(w)
	if !ok {
		return 0, 0
	}
	step, sync, ok := p.Steps.Placed(placement, perGPU)
	if !ok {
		return 0, 0
	}
	return step + float64(float64(accum-1)*(step-sync)), batch
}

// SpeedPlaced is Speed on an exact placement. Without a batch size it is that of Best for as many GPUs on as many
// nodes.
func (p *Profile) SpeedPlaced(phase int, placement []int, w Way) float64 {
	if w.Batch == 0 {
		gpus, nodes := count(placement)
		if w, _ = p.Best(phase, gpus, nodes, sched.BatchRange{}); w.Batch == 0 {
			return 0
		}
	}
	seconds, batch := p.UpdatePlaced(placement, w)
	if seconds <= 0 {
		return 0
	}
	return p.Validation.Gain(phase, batch) / seconds
}

// count returns the GPUs of a placement and the nodes that have any.
func count(placement []int) (gpus, nodes int) {
	for _, g := range placement {
		if g > 0 {
			gpus, nodes = gpus+g, nodes+1
		}
	}
	return gpus, nodes
}
