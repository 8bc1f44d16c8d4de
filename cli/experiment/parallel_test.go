package experiment

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

// Ensure that every task is done once, that an error ends it and is reported, not those of the tasks called off, and
// that so does the end of the context.
func TestInParallel(t *testing.T) {
	n := 100 + 2*runtime.GOMAXPROCS(0) // more than start at once
	done := make([]int, n)
	tasks := make([]task, n)
	for i := range tasks {
		tasks[i] = func(context.Context) error {
			done[i]++
			return nil
		}
	}
	if err := inParallel(t.Context(), tasks, nil); err != nil {
		t.Fatal(err)
	}
	for i, times := range done {
		if times != 1 {
			t.Fatalf("task %d was done %d times", i, times)
		}
	}
	var begun atomic.Int32
	bad := errors.New("bad")
	for i := range tasks {
		tasks[i] = func(ctx context.Context) error {
			if begun.Add(1); i == 3 {
				return bad
			}
			if i < 3 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
	}
	err := inParallel(t.Context(), tasks, nil)
	if err != bad || int(begun.Load()) == n { //nolint:errorlint // the very one
		t.Errorf("error %v after %d tasks, want %v after few", err, begun.Load(), bad)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inParallel(ctx, tasks[10:], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := inParallel(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
}
