package manager

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/manager/kept"
	"github.com/trainyard/trainyard/sched"
)

// Clean removes outputs, or run folders, of jobs that have been done for some time; checkpoints stay. An attempt whose
// shim lives is left alone. It may be cut short by ctx, and be asked for again.
func (m *Manager) Clean(ctx context.Context, in api.Clean) (doc api.Cleaned, err error) {
	doc = api.Cleaned{Schema: "trainyard.cleaned/v1", Dry: in.Dry, Left: []api.Left{}}
	if in.Snapshots {
		err = m.dropScripts(ctx, in.OlderSec, &doc)
	}
	if err == nil && (in.Outputs || in.Runs || !in.Snapshots) {
		err = m.cleanRuns(ctx, &in, &doc)
	}
	return doc, err
}

// cleanRuns is Clean for what attempts wrote.
func (m *Manager) cleanRuns(ctx context.Context, in *api.Clean, doc *api.Cleaned) error {
	var done []sched.JobID
	r := kept.Removal{Dir: m.o.Dir, Runs: in.Runs || !in.Outputs, Dry: in.Dry}
	err := m.Look(ctx, func(v *sched.View) {
		for id := range v.Jobs {
			j := &v.Jobs[id]
			if t, bad := task.DecodeTask(j.Spec.Task); bad == nil && m.within(t.Checkpoint.Dir) {
				r.Keep = append(r.Keep, t.Checkpoint.Dir)
			}
			if j.State == sched.Done && v.Now.Sub(j.End).Seconds() >= in.OlderSec {
				done = append(done, sched.JobID(id))
			}
		}
	})
	if err != nil {
		return err
	}
	for _, id := range done {
		if late := ctx.Err(); late != nil {
			return late
		}
		if bad := r.Job(id, doc); bad != nil {
			doc.Left = append(doc.Left, api.Left{Job: int(id), Why: bad.Error()})
		}
	}
	if r.Runs && !in.Dry {
		err = m.dropUnused(ctx, doc)
	}
	return err
}

// within reports whether a path leads into the folders of jobs.
func (m *Manager) within(path string) bool {
	return strings.HasPrefix(path, filepath.Join(m.o.Dir, "jobs")+"/")
}

// Clean is that of the manager.
func (s *Site) Clean(ctx context.Context, in api.Clean) (api.Cleaned, error) {
	return s.m.Clean(ctx, in)
}

// Limits of how often what is not to be kept is removed.
const (
	cleanLeast = time.Second
	cleanMost  = time.Hour
)

// cleanUp removes, now and then until ctx ends, what is older than is to be kept.
func (m *Manager) cleanUp(ctx context.Context) {
	tick := time.NewTicker(min(max(m.o.Keep/10, cleanLeast), cleanMost))
	defer tick.Stop()
	for {
		doc, err := m.Clean(ctx, api.Clean{OlderSec: m.o.Keep.Seconds(), Runs: true, Snapshots: true})
		switch {
		case err != nil && ctx.Err() == nil:
			m.o.Log.Warn("what is not to be kept is not removed", "error", err)
		case doc.Attempts > 0:
			m.o.Log.Info("removed", "attempts", doc.Attempts, "bytes", doc.Bytes)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
