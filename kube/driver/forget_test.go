package driver

import (
	"reflect"
	"testing"
	"time"

	"github.com/trainyard/trainyard/kube/driver/internal/objects"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that nothing is kept of jobs that are over or were never possible: a controller leads for months.
func TestForgets(t *testing.T) {
	kept := func(w *world) int {
		return sizeOf(w.d.attempts, "odometers", "losses", "alive") + sizeOf(w.d.objects, "unclean") +
			sizeOf(w.d.jobs, "turnedAway")
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
				w.Errorf("kept: %+v, %+v", w.d.attempts, w.d.objects)
			}
		}},
		{name: "a job that is cancelled while it waits, after it lost its machine", width: 1, test: func(w *world) {
			w.run()
			must(w, w.Delete(w.Context(), w.podOf("train-1-0")))
			w.settle()
			w.ended(sched.NodeLost, "")
			if sizeOf(w.d.attempts, "odometers") == 0 || sizeOf(w.d.attempts, "losses") == 0 {
				w.Fatal("want it known how the next attempt goes on")
			}
			must(w, w.Delete(w.Context(), objects.Job("train", 1, nil)))
			w.settle()
			if w.v.Jobs[0].State != sched.Done || kept(w) > 0 {
				w.Errorf("%v, kept: %+v, %+v", w.v.Jobs[0].State, w.d.attempts, w.d.objects)
			}
		}},
		{name: "a job that is impossible, once it is deleted", width: 1, test: func(w *world) {
			bad := objects.Job("bad", 1, nil)
			bad.Finalizers, bad.Spec.Template.Spec.Containers = nil, nil
			must(w, w.Create(w.Context(), bad))
			w.settle()
			if sizeOf(w.d.jobs, "turnedAway") != 1 {
				w.Fatalf("refused: %+v", w.d.jobs)
			}
			must(w, w.Delete(w.Context(), objects.Job("bad", 1, nil)))
			w.settle()
			if kept(w) > 0 {
				w.Errorf("refused: %+v", w.d.jobs)
			}
		}},
	})
}

// sizeOf returns how much fields of a part of the driver hold, which only the part itself may read.
func sizeOf(part any, fields ...string) (n int) {
	for _, name := range fields {
		n += reflect.ValueOf(part).Elem().FieldByName(name).Len()
	}
	return n
}
