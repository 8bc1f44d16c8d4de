package interference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// Place is where and how a set runs. What was measured in one place says nothing of another.
type Place struct {
	GPU   string // GPU type
	How   sched.Mechanism
	Width int32 // GPUs of the gang
}

// Member is a job of a set.
type Member struct {
	Model string
	Use   float64 // of its GPUs alone, 0..1; 0 = unknown
}

// MaxSet bounds the jobs of a set.
const MaxSet = 8

// checkSet returns what is wrong with a set, or nil.
func checkSet(p Place, models []string) error {
	switch {
	case p.How >= sched.Mechanisms || p.Width < 0:
		return fmt.Errorf("interference: mechanism %d, width %d, want one of %s and a width >= 0", p.How, p.Width,
			strings.Join(sched.MechanismWords(), ", "))
	case len(models) == 0 || len(models) > MaxSet:
		return fmt.Errorf("interference: a set of %d jobs, want 1 to %d", len(models), MaxSet)
	case slices.Contains(models, ""):
		return fmt.Errorf("interference: a set with a job of unknown model, want the models of all")
	}
	return nil
}

// key names a set in its place. The models are sorted, and their lengths keep names apart.
func key(p Place, sorted []string) string {
	b := placeName(p)
	for _, s := range sorted {
		b = appendName(b, s)
	}
	return string(b)
}

func placeName(p Place) []byte {
	b := strconv.AppendInt(nil, int64(p.How), 10)
	b = strconv.AppendInt(append(b, '/'), int64(p.Width), 10)
	return appendName(b, p.GPU)
}

func appendName(b []byte, s string) []byte {
	b = strconv.AppendInt(append(b, '/'), int64(len(s)), 10)
	return append(append(b, ':'), s...)
}

// FitsSum reports whether a job fits by the rule of EaCO's Algorithm 2: the free memory of its GPUs together exceeds
// need, that of the whole job. It assumes that the model can be cut as one likes (model parallelism). free counts what
// is left at the peak use of the residents: their peaks add up (Lucid's pairs: median ratio 1.003).
func FitsSum(free []float64, need float64) bool {
	sum := 0.0
	for _, f := range free {
		sum += f
	}
	return sum > need
}

// Estimate is a slow-down and how well it is known.
type Estimate struct {
	Slow   float64 // >= what the source says
	Source Source
	Weight float64    // measurements behind it, old ones counting less; 0 = prior alone
	Error  float64    // standard error of Slow; +Inf = fewer than two measurements
	Last   sched.Time // the latest of them
}

// Source says where an estimate is from.
type Source uint8

// Sources, best first.
const (
	Alone  Source = iota // a set of one
	Exact                // the set was measured
	Subset               // a part of it was, and the prior says how it grows
	Prior                // nothing was
)

var sourceWords = [...]string{"alone", "exact", "subset", "prior"}

// String returns the word of a known source.
func (s Source) String() string { return sourceWords[s] }
