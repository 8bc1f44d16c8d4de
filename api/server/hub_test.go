package server

import (
	"context"
	"testing"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/api/site"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/sched"
)

// reluctant is a host of one job that answers as many looks as it has left.
type reluctant struct {
	Host

	v    sched.View
	left int
}

func (r *reluctant) Look(_ context.Context, f func(*sched.View)) error {
	if r.left--; r.left < 0 {
		return api.ErrBusy
	}
	f(&r.v)
	return nil
}

func (r *reluctant) Header() eventlog.Header { return eventlog.Header{} }

// plainSite is a machine that measures nothing.
type plainSite struct{ site.Site }

func (plainSite) Kind() string                           { return api.Machine }
func (plainSite) Unit() string                           { return "slot" }
func (plainSite) Ref(sched.JobID, *sched.JobSpec) string { return "0" }
func (plainSite) Measure([]api.GPU)                      {}

// Ensure that what changed is shown by the next look where one breaks off, wherever it does: it would not be looked for
// again.
func TestBoardAfterBrokenLooks(t *testing.T) {
	t.Parallel()
	for left := range 2 {
		host := &reluctant{left: 100, v: sched.View{Jobs: []sched.Job{{State: sched.Waiting,
			Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}}}}}
		h := newHub(&Server{o: Options{Host: host, Site: plainSite{}}})
		h.rows = make(map[int]api.Row)
		if err := h.look(t.Context(), 1); err != nil || h.rows[0].State != "waiting" {
			t.Fatalf("%v, %+v", err, h.rows)
		}
		host.v.Jobs[0].State, host.left = sched.Done, left
		if err := h.look(t.Context(), 2); err == nil {
			t.Fatalf("%d looks sufficed", left)
		}
		host.left = 100
		if err := h.look(t.Context(), 2); err != nil || h.rows[0].State != "done" {
			t.Errorf("broken off after %d: %v, job is shown as %s, want done", left, err, h.rows[0].State)
		}
	}
}
