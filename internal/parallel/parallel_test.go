package parallel

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

// Ensure that every task is done once, that an error ends it and is reported, not those of the tasks called off, and
// that so does the end of the context.
func TestDo(t *testing.T) {
	n := 100 + 2*runtime.GOMAXPROCS(0) // more than start at once
	done := make([]int, n)
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = func(context.Context) error {
			done[i]++
			return nil
		}
	}
	if err := Do(t.Context(), runtime.GOMAXPROCS(0), tasks, nil); err != nil {
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
	err := Do(t.Context(), runtime.GOMAXPROCS(0), tasks, nil)
	if err != bad || int(begun.Load()) == n { //nolint:errorlint // the very one
		t.Errorf("error %v after %d tasks, want %v after few", err, begun.Load(), bad)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Do(ctx, runtime.GOMAXPROCS(0), tasks[10:], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if err := Do(t.Context(), runtime.GOMAXPROCS(0), nil, nil); err != nil {
		t.Error(err)
	}
}
