package allocate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/trainyard/trainyard/internal/memo"
	"github.com/trainyard/trainyard/model/elastic"
	"github.com/trainyard/trainyard/sched"
)

// Explored remembers the most GPUs that jobs of each model have run on: beyond, what is learned of their speed is hope.
// Its zero value is ready.
type Explored struct {
	sched.ByName

	gpus map[string]int32
}

var (
	_ sched.Observer = (*Explored)(nil)
	_ sched.Memory   = (*Explored)(nil)
)

// mostModels bounds what is remembered: of further models nothing is.
const mostModels = 1 << 14

// Of returns the most GPUs that a job of a model has run on, 0 = none has.
func (x *Explored) Of(model string) int { return int(x.gpus[model]) }

// Observe looks at the attempts that start.
func (x *Explored) Observe(v *sched.View, e *sched.Event) {
	if e.Kind != sched.AttemptStarted {
		return
	}
	model, n := v.Jobs[e.Job].Spec.Model, int32(len(v.Jobs[e.Job].GPUs))
	if most, known := x.gpus[model]; n > most && (known || len(x.gpus) < mostModels) {
		if x.gpus == nil {
			x.gpus = make(map[string]int32)
		}
		x.gpus[model] = n
	}
}

// Format names what is saved.
func (*Explored) Format() string { return "explored/1" }

// SaveJob appends nothing.
func (*Explored) SaveJob(_ sched.JobID, b []byte) []byte { return b }

// LoadJob takes nothing.
func (*Explored) LoadJob(_ sched.JobID, b []byte) error { return memo.NewReader(b).End() }

// SaveRest appends the widths by model, in order of name.
func (x *Explored) SaveRest(b []byte) []byte {
	b = memo.Uint(b, uint64(len(x.gpus)))
	for _, model := range slices.Sorted(maps.Keys(x.gpus)) {
		b = memo.Uint(memo.Text(b, model), uint64(x.gpus[model]))
	}
	return b
}

// LoadRest takes what SaveRest wrote. On error all stays as it was.
func (x *Explored) LoadRest(b []byte) error {
	r := memo.NewReader(b)
	gpus := make(map[string]int32)
	for range r.Uint(mostModels) {
		model := r.Text()
		gpus[model] = int32(r.Uint(elastic.MaxGPUs))
		if r.Err() != nil {
			break
		}
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("allocate: memory of widths by model: %w", err)
	}
	x.gpus = gpus
	return nil
}
