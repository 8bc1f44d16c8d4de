package driver

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that nothing is kept of jobs that are over or were never possible: a controller leads for months.
func TestForgets(t *testing.T) {
	kept := func(w *world) int {
		return len(w.d.odometers) + len(w.d.lost) + len(w.d.unclean) + len(w.d.turnedAway) + len(w.d.attempts)
	}
	play(t, []scene{
		{name: "a job that finished", width: 6, env: map[string]string{lifetime: "5s"}, test: func(w *world) {
			w.run()
			if kept(w) == 0 {
				w.Fatal("want something kept of a job that runs")
			}
			w.pass(10 * time.Second)
			w.ended(sched.Finished, "")
			if kept(w) > 0 {
				w.Errorf("kept: odometers %v, losses %v, attempts %v", w.d.odometers, w.d.lost, w.d.unclean)
			}
		}},
		{name: "a job that is cancelled while it waits, after it lost its machine", width: 1, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), w.podOf("train-1-0")))
			w.settle()
			w.ended(sched.NodeLost, "")
			if len(w.d.odometers) == 0 || len(w.d.lost) == 0 {
				w.Fatal("want it known how the next attempt goes on")
			}
			must(w, w.Delete(w.Context(), objects.Job("train", 1, nil)))
			w.settle()
			if w.v.Jobs[0].State != sched.Done || kept(w) > 0 {
				w.Errorf("%v, kept: odometers %v, losses %v, attempts %v", w.v.Jobs[0].State, w.d.odometers, w.d.lost, w.d.unclean)
			}
		}},
		{name: "a job that is impossible, once it is deleted", width: 1, test: func(w *world) {
			bad := objects.Job("bad", 1, nil)
			bad.Finalizers, bad.Spec.Template.Spec.Containers = nil, nil
			must(w, w.Create(w.Context(), bad))
			w.settle()
			if len(w.d.turnedAway) != 1 {
				w.Fatalf("refused: %v", w.d.turnedAway)
			}
			must(w, w.Delete(w.Context(), objects.Job("bad", 1, nil)))
			w.settle()
			if kept(w) > 0 {
				w.Errorf("refused: %v", w.d.turnedAway)
			}
		}},
	})
}
