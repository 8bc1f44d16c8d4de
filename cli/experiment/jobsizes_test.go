package experiment

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// sizedJobs are jobs that come one after another, of sizes that are alike, to within a tenth, for each of three
// models, or not.
func sizedJobs(alike bool) []trace.Job {
	r := rand.New(rand.NewPCG(1, 7))
	jobs := make([]trace.Job, 1500)
	for i := range jobs {
		model := r.IntN(3)
		size := 60 * math.Exp2(float64(3*model)) * math.Exp(.1*r.NormFloat64())
		if !alike {
			model = r.IntN(3)
		}
		jobs[i] = trace.Job{Spec: sched.JobSpec{Model: fmt.Sprint("model", model), GPUs: sched.Rigid(1 + i%2),
			Submit: sched.Time(0).Add(sched.Seconds(float64(600 * i)))}, Duration: sched.Seconds(size)}
	}
	return jobs
}

// Ensure that a class that shows sizes saves what it is worth, log2(3) bits of three models, and one that does not
// saves nothing; and that what is foreseen is calibrated.
func TestSizesAreShownByTheirClass(t *testing.T) {
	for _, alike := range []bool{true, false} {
		x := sizesTrace{"drawn", sizedJobs(alike)}
		rows, err := x.rows(t.Context(), "duration")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			saved := 0.0
			if alike && (r.Classes == "model" || r.Classes == "worth") {
				saved = math.Log2(3)
			}
			if math.Abs(r.Saved.Mean-saved) > .4 {
				t.Errorf("alike %v: %s saves %v bits, want %.2f", alike, r.Classes, r.Saved, saved)
			}
			for q, want := range []float64{.1, .5, .9} {
				if math.Abs(r.Under[q]-want) > .06 {
					t.Errorf("alike %v: %s: %.2f of the jobs are under the quantile %v", alike, r.Classes,
						r.Under[q], want)
				}
			}
		}
	}
}

// Ensure that service is the duration by the GPUs: the width shows it where durations are equal.
func TestSizesOfService(t *testing.T) {
	jobs := sizedJobs(false)
	for i := range jobs {
		jobs[i].Duration = sched.Seconds(100)
		jobs[i].Spec.GPUs = sched.Rigid(1 + 7*(i%2))
	}
	x := sizesTrace{"drawn", jobs}
	for size, want := range map[string]float64{"duration": 0, "service": 1} {
		rows, err := x.rows(t.Context(), size)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Classes == "width" && math.Abs(r.Saved.Mean-want) > .2 {
				t.Errorf("%s: the width saves %v bits, want %v", size, r.Saved, want)
			}
		}
	}
}

// Ensure that sizes that were held to be impossible cost no more than 20 bits, that too few jobs are an error, and that
// the table fits.
func TestSizesAtTheirBounds(t *testing.T) {
	jobs := sizedJobs(true)
	for i := 100; i < len(jobs); i++ {
		jobs[i].Duration = sched.Seconds(1e8 + 1e5*float64(i))
	}
	x := sizesTrace{"drawn", jobs[:150]}
	rows, err := x.rows(t.Context(), "service")
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Bits <= 8 || rows[0].Bits > mostBits {
		t.Errorf("%v bits, want many, %d at most", rows[0].Bits, mostBits)
	}
	var b strings.Builder
	if err := printSizes(&b, rows, true); err != nil {
		t.Fatal(err)
	}
	for _, x := range sizesTraces {
		if !strings.Contains(b.String(), x.path) {
			t.Errorf("it does not say that --data is to have %s", x.path)
		}
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	x.jobs = jobs[:sizesFirst]
	if _, err := x.rows(t.Context(), "duration"); err == nil {
		t.Error("twenty jobs are enough")
	}
	if err := sizesExperiment(t.Context(), io.Discard, Options{Data: t.TempDir()}); err == nil {
		t.Error("a folder without traces is taken")
	}
}
