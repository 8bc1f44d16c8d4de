// Package parallel does tasks that do not depend on each other, several at a time.
package parallel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Task is one of many that do not depend on each other. It keeps what comes of it where no one else looks meanwhile.
type Task func(ctx context.Context) error

// progressEvery is how often Do says how far it has come.
const progressEvery = 20 * time.Second

// Do does all tasks, at most so many at a time (>= 1), and reports to progress how many are done; nil: no report. What
// comes of them does not depend on how many there are at a time. Once one has failed, or ctx is done, no further one
// starts; the error is that of the first in the list of those that failed, or that of ctx.
func Do(ctx context.Context, most int, tasks []Task, progress io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(tasks))
	next, done := make(chan int), make(chan struct{}, len(tasks))
	var workers sync.WaitGroup
	for range min(most, len(tasks)) {
		workers.Go(func() {
			for i := range next {
				if errs[i] = tasks[i](ctx); errs[i] != nil {
					cancel()
				}
				done <- struct{}{}
			}
		})
	}
	hand(ctx, len(tasks), next, done, progress)
	workers.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return context.Cause(ctx)
}

// hand gives out the numbers of n tasks while ctx lasts, and says how many are done.
func hand(ctx context.Context, n int, next chan<- int, done <-chan struct{}, progress io.Writer) {
	defer close(next)
	began, tick := time.Now(), time.NewTicker(progressEvery)
	defer tick.Stop()
	for given, over := 0, 0; over < n; {
		var out chan<- int
		if given < n {
			out = next
		}
		select {
		case out <- given:
			given++
		case <-done:
			over++
		case <-tick.C:
			if progress != nil {
				fmt.Fprintf(progress, "%d of %d parts done after %v\n", over, n, time.Since(began).Round(time.Second))
			}
		case <-ctx.Done():
			return
		}
	}
}
