package writer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ensure that the tasks of a line follow each other, that a new one calls the old one off, and that other lines do not
// wait.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriters(nil, false, slog.New(slog.DiscardHandler))
		defer w.Close()
		var mu sync.Mutex
		var did []string
		note := func(s string) { mu.Lock(); defer mu.Unlock(); did = append(did, s) }
		w.Do("a", func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second) // what it is writing is written
			note("first is over")
		})
		synctest.Wait()
		w.Do("a", func(context.Context) { note("second") })
		w.Do("a", func(context.Context) { note("third") })
		w.Do("b", func(context.Context) { note("other line") })
		synctest.Wait()
		busy := func(line string) bool { w.mu.Lock(); defer w.mu.Unlock(); return w.lines[line] != nil }
		if !busy("a") || busy("b") {
			t.Error("want line a busy, and b not")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if want := []string{"other line", "first is over", "third"}; !slices.Equal(did, want) || busy("a") {
			t.Errorf("did %q, want %q", did, want)
		}
	})
}

// Ensure that a write is tried until it succeeds or fails for good.
func TestWrite(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed"))
	for _, c := range []struct {
		name  string
		fails []error
		tries int
	}{
		{"at once", nil, 1},
		{"what mends itself",
			[]error{errors.New("connection refused"), conflict, apierrors.NewInternalError(errors.New("etcd"))}, 4},
		{"what does not",
			[]error{conflict, apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no right"))}, 2},
		{"an error that is said to be final", []error{Fatal(errors.New("it belongs to another"))}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWriters(nil, false, slog.New(slog.DiscardHandler))
				defer w.Close()
				tries := 0
				err := w.Write(t.Context(), func(context.Context) error {
					if tries++; tries <= len(c.fails) {
						return c.fails[tries-1]
					}
					return nil
				})
				if tries != c.tries || (err != nil) != (c.tries == len(c.fails)) {
					t.Errorf("%d tries, %v; want %d", tries, err, c.tries)
				}
			})
		})
	}
}

// Ensure that nothing is written once the lease is lost, and that it is said.
func TestWritersLoseTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("another leads")
		var lease error
		w := NewWriters(func() error { return lease }, false, slog.New(slog.DiscardHandler))
		defer w.Close()
		calls := 0
		call := func(context.Context) error { calls++; return nil }
		if err := w.Write(t.Context(), call); err != nil || w.Err() != nil {
			t.Errorf("with the lease: %v, %v", err, w.Err())
		}
		lease = gone
		err := w.Write(t.Context(), call)
		if !errors.Is(err, context.Canceled) || !errors.Is(w.Err(), gone) || calls != 1 {
			t.Errorf("without it: %v, %v, %d calls", err, w.Err(), calls)
		}
		select {
		case <-w.Lost():
		default:
			t.Error("want it said that the lease is lost")
		}
	})
}

// Ensure that Close waits for what is being written and calls off the rest.
func TestWritersClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWriters(nil, false, slog.New(slog.DiscardHandler))
		over := ""
		w.Do("a", func(ctx context.Context) {
			_ = w.Once(ctx, func(ctx context.Context) error {
				time.Sleep(time.Second)
				over = fmt.Sprint("written, called off: ", ctx.Err() != nil)
				return nil
			})
		})
		synctest.Wait()
		if w.Close(); over != "written, called off: false" {
			t.Errorf("after Close: %q", over)
		}
	})
}
