package interference

import (
	"io"

	"github.com/trainyard/trainyard/internal/csvtable"
)

// ReadNormSpeeds reads pairs of larger models (norm_speed.csv of the PAL artifact): columns model1, dataset1, gpu_num1,
// batch_size1, speed1, pipeline_strategy (of the first) and the like of a second model, or Empty for a job alone;
// speeds are over the model's best alone. A slow-down is the speed alone with the same pipeline over that next to the
// other. Models are named model/batch size, the first with its pipeline behind another slash unless that is NA. Pairs
// of speed 0 did not run and are left out. Errors call the file by name.
func ReadNormSpeeds(r io.Reader, name, gpu string) ([]Set, error) {
	t, err := csvtable.Open(r, "interference", name)
	if err != nil {
		return nil, err
	}
	err = t.Only("index", "model1", "dataset1", "gpu_num1", "batch_size1", "speed1", "co_pipeline_rank",
		"pipeline_strategy",
		"model2", "dataset2", "gpu_num2", "batch_size2", "speed2")
	if err != nil {
		return nil, err
	}
	var sets []Set
	alone := make(map[string]float64) // of models in pipelines
	err = t.Each(func() error {
		s, wrong := normRow(t, gpu)
		if wrong == nil && t.Raw("model2") == "Empty" {
			alone[jobKey(gpu, s.Models[0], s.Place.Width)] = s.Slow[0]
		} else {
			sets = append(sets, s)
		}
		return wrong
	})
	if err != nil {
		return nil, err
	}
	return slowOf(sets, alone), nil
}

// normRow returns a row as a set, with speeds where slow-downs go.
func normRow(t *csvtable.Table, gpu string) (s Set, err error) {
	number := func(column string, least, most float64) (x float64) {
		if err == nil {
			x, err = t.Number(column, least, most)
		}
		return x
	}
	width := number("gpu_num1", 1, 1<<20)
	s = Set{Place: Place{GPU: gpu, Width: int32(width)}, Models: []string{t.Raw("model1") + "/" + t.Raw("batch_size1"),
		t.Raw("model2") + "/" + t.Raw("batch_size2")},
		Slow: []float64{number("speed1", 0, 1), number("speed2", 0, 1)}}
	if pipeline := t.Raw("pipeline_strategy"); pipeline != "NA" {
		s.Models[0] += "/" + pipeline
	}
	if other := number("gpu_num2", 0, 1<<20); err == nil && t.Raw("model2") != "Empty" && other != width {
		err = t.Fail("%v and %v GPUs, want equal widths", width, other)
	}
	return s, err
}

// slowOf turns the speeds of pairs that ran into slow-downs.
func slowOf(sets []Set, alone map[string]float64) (list []Set) {
	for _, s := range sets {
		if s.Slow[0] == 0 || s.Slow[1] == 0 {
			continue
		}
		for k, speed := range s.Slow {
			base, known := alone[jobKey(s.Place.GPU, s.Models[k], s.Place.Width)]
			if !known || base == 0 {
				base = 1
			}
			s.Slow[k] = base / speed
		}
		list = append(list, s)
	}
	return list
}
