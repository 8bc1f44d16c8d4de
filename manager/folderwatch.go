package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/manager/store"
)

// ErrMoved says that a folder was removed, or moved, while it was served.
var ErrMoved = errors.New("is not where it was: it was removed or moved")

// Run is that of the Host, and ends with ErrMoved once the folder, or the log in it, is not what was opened: what is
// decided then no one would find. Attempts go on, and put back, the folder is taken up by the next manager.
func (m *Manager) Run(ctx context.Context) error {
	path := filepath.Join(m.Dir(), store.FileName)
	opened, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("manager: %s %w: %w", m.Dir(), ErrMoved, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		if moved := watch(ctx, path, opened); moved != nil {
			stop(fmt.Errorf("manager: %s %w; put it back and serve it again: jobs go on meanwhile", m.Dir(), moved))
		}
	}()
	err = m.serve(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, ErrMoved) {
		return cause
	}
	return err
}

// watchEvery is how often the folder is looked for. A second look has to agree.
const watchEvery = time.Second

// watch returns ErrMoved once another file than the one that was opened is at path, or none; nil when ctx ends.
func watch(ctx context.Context, path string, opened os.FileInfo) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for misses := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := os.Stat(path)
		switch {
		case err == nil && os.SameFile(now, opened):
			misses = 0
		case err == nil || errors.Is(err, os.ErrNotExist):
			if misses++; misses == 2 {
				return ErrMoved
			}
		}
	}
}
