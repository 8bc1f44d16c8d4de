package engine_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/sched"
)

var number = regexp.MustCompile(`[0-9]+`)

// Ensure that a log with a wrong number in one line folds, or is an error that says where, and that it is no crash to
// replay it either: a bad line must not end one manager after the other.
func TestFoldPoisoned(t *testing.T) {
	errs, edits := 0, int(seeds(100))
	for seed := range uint64(10) {
		rec := record(t, []string{"fifo-easy", "tiresias-las"}[seed%2], seed)
		decider := func() sched.Decider { return rec.decider(t) }
		if seed >= 8 { // nodes, pools and GPUs change as well
			rec, decider = recordErratic(t, seed), func() sched.Decider { return erratic{} }
		}
		r := rand.New(rand.NewPCG(seed, 3))
		lines := len(readTape(t, rec.log).records)
		for range edits {
			bad := rec.edit(1+r.IntN(lines), func(line string) string {
				places := number.FindAllStringIndex(line, -1)
				at := places[r.IntN(len(places))]
				return line[:at[0]] + strconv.Itoa([]int{0, 1, 77, 1000000}[r.IntN(4)]) + line[at[1]:]
			})
			reader := bad.open(t)
			_, _, err := engine.Fold(reader.Header(), reader.Records())
			if err != nil {
				errs++
			}
			if d := (*engine.Divergence)(nil); errors.As(err, &d) {
				t.Errorf("a fold compares nothing: %v", err)
			}
			_ = replay(bad.open(t), decider(), engine.ReplayOptions{}) // an error or none
		}
	}
	if errs < edits {
		t.Errorf("%d of %d logs are errors, want many", errs, 10*edits)
	}
}
