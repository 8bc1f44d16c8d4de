package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// inheritance keeps the environments that jobs inherit, each once, for as long as a job may need it.
type inheritance struct {
	mu   sync.Mutex
	kept map[string]bool // durable, as far as this manager knows
}

// give has those jobs inherit an environment that are to, once it is durable.
func (in *inheritance) give(dir string, jobs []jobfile.Job, env map[string]string) error {
	if !slices.ContainsFunc(jobs, func(j jobfile.Job) bool { return j.Inherit }) {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	digest := shim.EnvDigest(env)
	if !in.kept[digest] || !shim.State(dir).HasEnv(digest) {
		if err := shim.State(dir).KeepEnv(env); err != nil {
			return fmt.Errorf("the environment of the jobs cannot be kept: %w", err)
		}
	}
	if in.kept == nil {
		in.kept = make(map[string]bool)
	}
	in.kept[digest] = true
	for i := range jobs {
		if jobs[i].Inherit {
			jobs[i].Task.Inherit = digest
		}
	}
	return nil
}

// giveKnown has those jobs that are known beforehand inherit what came with them, and take the GPUs they ask for.
func (m *Manager) giveKnown(ctx context.Context) error {
	if m.o.Jobs == nil {
		return nil
	}
	if err := checkInherit(m.o.Jobs.Jobs, m.o.Inherit); err != nil {
		return err
	}
	h, err := m.kept.logged()
	if err != nil {
		return err
	}
	known, err := m.o.known(ctx, h.Types)
	if err != nil {
		return err
	}
	file := *m.o.Jobs // the one who read it has it unchanged
	file.Jobs = slices.Clone(known)
	m.o.Jobs = &file
	if err := m.keepKnown(file.Jobs); err != nil {
		return err
	}
	return m.inherit.give(m.o.Dir, file.Jobs, m.o.Inherit)
}

// checkInherit returns why jobs cannot inherit what came with them, or nil.
func checkInherit(jobs []jobfile.Job, env map[string]string) error {
	if err := task.CheckInherited(env); err != nil {
		return fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	for i := range jobs {
		if jobs[i].Inherit && env == nil {
			return fmt.Errorf("%w: job %s: inherit_env, and no environment came with it, want one (through a context "+
				"of kind server or command none is sent), or the variables under env",
				api.ErrMalformed, jobs[i].Spec.Name)
		}
	}
	return nil
}

// dropUnused removes the environments that no job which is not done inherits, and adds their bytes to doc. Those that a
// submission has kept since this manager started stay: its jobs may not be there yet.
func (m *Manager) dropUnused(ctx context.Context, doc *api.Cleaned) error {
	m.inherit.mu.Lock()
	defer m.inherit.mu.Unlock()
	dir := shim.State(m.o.Dir)
	digests, err := dir.KeptEnvs()
	if err != nil {
		return err
	}
	used, err := inUse(ctx, m)
	if err != nil {
		return err
	}
	for _, digest := range digests {
		if used[digest] || m.inherit.kept[digest] {
			continue
		}
		if size, bad := dir.DropEnv(digest); bad == nil {
			doc.Bytes += size
		}
	}
	return nil
}
