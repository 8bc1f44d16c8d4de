package engine_test

import (
	"testing"

	"github.com/trainyard/trainyard/engine"
)

// runTwin runs w with the indexed or the whole-pass walk and returns the hash of its events.
func runTwin(w *world, whole bool, more ...engine.Sink) (hasher, error) {
	s := w.stages()
	s.WholePass = whole
	var h hasher
	_, err := w.run(engine.NewPipeline(s), append(more, h.skipTicks(w))...)
	return h, err
}

// Under MinRun the plain walk may ask to be woken for victims that the indices know to be of no use, so wake-ups do not
// count there.
func (h *hasher) skipTicks(w *world) *hasher {
	h.ticks = w.system.minRun > 0
	return h
}

func twinsDiffer(w *world) bool {
	a, errA := runTwin(w, false)
	b, errB := runTwin(w, true)
	return a != b || (errA == nil) != (errB == nil)
}

// Ensure that the walk through indices takes exactly the decisions of the walk written down plainly, on random worlds.
func TestWalkAgreesWithWholePass(t *testing.T) {
	for seed := range uint64(cases(t, 6000)) {
		w := newWorld(seed)
		if !twinsDiffer(w) {
			continue
		}
		w = w.shrink(twinsDiffer)
		var a, b transcript
		_, errA := runTwin(w, false, &a)
		_, errB := runTwin(w, true, &b)
		t.Fatalf("%v\nerrors: indexed %v, whole pass %v\n%s", w, errA, errB, firstDifference(a.lines, b.lines))
	}
}
