package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/host/hosttest"
	"github.com/trainyard/trainyard/sched"
)

// under submits jobs under a key.
func (w *running) under(o host.Once, names ...string) (sched.JobID, error) {
	return w.Submit(context.Background(), jobs(names...), host.Submitting{Once: o})
}

// Ensure that jobs under a key arrive once, all of them, whoever asks again and when: at the same time, later, of the
// next host; that other content is refused, and that the keys of users are their own.
func TestSubmitOnce(t *testing.T) {
	both(t, func(r *rig) {
		w := r.run()
		ann := host.Once{User: "ann", Key: "k", Content: "c"}
		const asked = 20
		var first [asked]sched.JobID
		var all sync.WaitGroup
		for i := range asked {
			all.Go(func() {
				var err error
				if first[i], err = w.under(ann, "a", "b"); err != nil {
					r.Error(err)
				}
			})
		}
		all.Wait()
		for i := range first {
			if first[i] != first[0] {
				r.Errorf("asked again: job %d, want %d", first[i], first[0])
			}
		}
		for round := range 2 {
			if id, err := w.under(ann, "a", "b"); err != nil || id != first[0] {
				r.Errorf("round %d: job %d, %v, want %d", round, id, err, first[0])
			}
			if _, err := w.under(host.Once{User: "ann", Key: "k", Content: "other"}, "x"); !errors.Is(err,
				host.ErrKeyUsed) {
				r.Errorf("round %d, other content: %v", round, err)
			}
			user := fmt.Sprint("user ", round) // with a blank
			its := host.Once{User: user, Key: "k", Content: "other"}
			id, err := w.under(its, user)
			if again, bad := w.under(its, user); err != nil || bad != nil || id == first[0] || id != again {
				r.Errorf("round %d, another user: jobs %d and %d, %v, %v", round, id, again, err, bad)
			}
			if err := w.stop(); err != nil && !errors.Is(err, context.Canceled) {
				r.Fatal(err)
			}
			w = r.run() // the next host has it from the log, or the state
		}
		for name, n := range r.count() {
			if n != 1 || name == "x" {
				r.Errorf("job %s arrived %d times", name, n)
			}
		}
	})
}

// Ensure that jobs whose batch failed are submitted by whoever asks again, and that none is there twice where it did
// not.
func TestSubmitOnceAfterFailure(t *testing.T) {
	for name, moment := range map[string]hosttest.Moment{"before": hosttest.Before, "after": hosttest.After} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			w := r.run()
			broken := errors.New("the disk breaks")
			r.fail = func(m hosttest.Moment, _ uint64) error {
				if m == moment {
					return broken
				}
				return nil
			}
			once := host.Once{User: "ann", Key: "k", Content: "c"}
			if id, err := w.under(once, "a", "b"); !errors.Is(err, host.ErrStopped) {
				t.Fatalf("job %d, %v, want that it stopped", id, err)
			}
			_ = w.stop()
			r.fail = nil
			w = r.run()
			for range 2 {
				if id, err := w.under(once, "a", "b"); err != nil || id != 0 {
					t.Errorf("asked again: job %d, %v", id, err)
				}
			}
			if n := r.count(); n["a"] != 1 || n["b"] != 1 {
				t.Errorf("arrived: %v", n)
			}
		})
	}
}

// Ensure that what refuses jobs refuses new ones alone, and says so in its own words.
func TestSubmitRefused(t *testing.T) {
	r := newRig(t, false)
	w := r.run()
	full := errors.New("the disk is full")
	how := host.Submitting{Once: host.Once{User: "ann", Key: "k", Content: "c"}}
	id, err := w.Submit(t.Context(), jobs("a"), how)
	if err != nil {
		t.Fatal(err)
	}
	how.Refuse = func() error { return full }
	if again, err := w.Submit(t.Context(), jobs("a"), how); err != nil || again != id {
		t.Errorf("asked again: job %d, %v", again, err)
	}
	how.Once.Key = "new"
	for range 2 {
		if id, err := w.Submit(t.Context(), jobs("b"), how); !errors.Is(err, full) {
			t.Errorf("job %d, %v, want it refused", id, err)
		}
	}
	how.Refuse = nil
	if _, err := w.Submit(t.Context(), jobs("b"), how); err != nil {
		t.Error(err)
	}
	if n := r.count(); n["a"] != 1 || n["b"] != 1 {
		t.Errorf("arrived: %v", n)
	}
	if line := strings.Join(r.disk.Lines(), ""); strings.Count(line, `"key":"`) != 2 {
		t.Errorf("keys in the log: %s", line)
	}
}
