package manager

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// scripts keeps the scripts that jobs run as they were, each once, for as long as a job may need it.
type scripts struct {
	mu      sync.Mutex
	pending map[string]int // by digest: submissions whose jobs may not have arrived
	turns   chan struct{}  // one for each working tree that is being written
}

// readScripts returns the texts of the scripts that jobs are to run as they are now, by path: those that came with
// them, else those of this machine.
func readScripts(jobs []jobfile.Job, sent map[string]string) (map[string]string, error) {
	texts := make(map[string]string)
	for i := range jobs {
		t := &jobs[i].Task
		if t.Script.At == 0 {
			continue
		}
		path := t.ScriptPath()
		text, given := sent[path]
		if _, known := texts[path]; known {
			continue
		}
		if base := filepath.Base(path); base == "." || base == ".." || base == "/" {
			return nil, fmt.Errorf("%w: job %s: snapshot: script %s, want a file", api.ErrMalformed, jobs[i].Spec.Name,
				path)
		}
		if !given {
			b, err := readScript(path)
			if err != nil {
				return nil, fmt.Errorf("%w: job %s: snapshot: script: %w", api.ErrMalformed, jobs[i].Spec.Name, err)
			}
			text = string(b)
		}
		if len(text) > task.MaxScript {
			return nil, fmt.Errorf("%w: job %s: snapshot: script %s of more than %d bytes, want less",
				api.ErrMalformed, jobs[i].Spec.Name, path, task.MaxScript)
		}
		texts[path] = text
	}
	return texts, nil
}

// readScript reads a file of this machine, up to a byte more than a script may have. A pipe that no one writes to holds
// nothing up.
func readScript(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, fmt.Errorf("%s, want a file", path))
	}
	return io.ReadAll(io.LimitReader(f, task.MaxScript+1))
}

// keep has jobs run their scripts as texts has them, once those are durable. done is called once the jobs have arrived,
// or will not.
func (k *scripts) keep(ctx context.Context, dir string, jobs []jobfile.Job,
	texts map[string]string) (done func(), err error) {
	digests := make(map[string]string) // by path
	done = func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, digest := range digests {
			if k.pending[digest]--; k.pending[digest] == 0 {
				delete(k.pending, digest)
			}
		}
	}
	err = k.keepTrees(ctx, shim.State(dir), jobs, digests)
	if err != nil {
		return done, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range jobs {
		t := &jobs[i].Task
		if t.Script.At == 0 {
			continue
		}
		path := t.ScriptPath()
		if _, kept := digests[path]; !kept {
			digest, bad := shim.State(dir).KeepScript(filepath.Base(path), []byte(texts[path]))
			if bad != nil {
				return done, fmt.Errorf("the script of job %s cannot be kept: %w", jobs[i].Spec.Name, bad)
			}
			digests[path] = digest
			k.wanted(digest)
		}
		t.Script.Sum = digests[path]
	}
	return done, nil
}

// keepTrees has jobs run in their working trees as they are now, and adds the digests of those, by folder. While git
// works, which may take long, others may submit.
func (k *scripts) keepTrees(ctx context.Context, dir shim.State, jobs []jobfile.Job,
	digests map[string]string) error {
	trees := make(map[string]task.Tree) // by folder
	for i := range jobs {
		t := &jobs[i].Task
		if t.Tree.Root == "" || t.Tree.Sum != "" {
			continue
		}
		folder := t.Tree.Root
		tree, kept := trees[folder]
		if !kept {
			var err error
			if tree, err = k.keepTree(ctx, dir, folder); err != nil {
				return fmt.Errorf("job %s: %w", jobs[i].Spec.Name, err)
			}
			trees[folder], digests["tree of "+folder] = tree, tree.Sum
		}
		t.Tree = tree
		// git names the tree without links on the way
		if real, err := filepath.EvalSymlinks(t.Dir); err == nil {
			t.Dir = real
		}
	}
	return nil
}

// keepTree keeps a working tree, which a job will need that has not arrived yet.
func (k *scripts) keepTree(ctx context.Context, dir shim.State, folder string) (task.Tree, error) {
	turns := k.turn()
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return task.Tree{}, ctx.Err()
	}
	defer func() { <-turns }()
	tree, put, drop, err := newTree(ctx, dir, folder)
	if err != nil {
		return tree, err
	}
	defer drop()
	k.mu.Lock()
	defer k.mu.Unlock()
	err = put()
	if err != nil {
		return tree, err
	}
	k.wanted(tree.Sum)
	return tree, nil
}

// wanted counts a submission whose job has not arrived.
func (k *scripts) wanted(digest string) {
	if k.pending == nil {
		k.pending = make(map[string]int)
	}
	k.pending[digest]++
}

// mostTrees is how many working trees are written at a time.
const mostTrees = 2

// turn returns the turns of those who write a working tree.
func (k *scripts) turn() chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.turns == nil {
		k.turns = make(chan struct{}, mostTrees)
	}
	return k.turns
}

// keepKnown has jobs that are known beforehand run their scripts as they are now; those that the log has already run
// the copies they were given, whatever has become of the files.
func (m *Manager) keepKnown(jobs []jobfile.Job) error {
	if !slices.ContainsFunc(jobs, copies) {
		return nil
	}
	arrived := make(map[string]bool) // by name
	for rec, err := range m.kept.records {
		if err != nil {
			return err
		}
		if rec.Event.Kind == sched.JobArrived {
			arrived[rec.Event.Spec.Name] = true
		}
	}
	coming, at := make([]jobfile.Job, 0, len(jobs)), make([]int, 0, len(jobs))
	for i := range jobs {
		if copies(jobs[i]) && !arrived[jobs[i].Spec.Name] {
			coming, at = append(coming, jobs[i]), append(at, i)
		}
	}
	texts, err := readScripts(coming, nil)
	if err == nil {
		_, err = m.scripts.keep(context.Background(), m.o.Dir, coming, texts) // for as long as this manager runs
	}
	for k, i := range at {
		jobs[i] = coming[k]
	}
	return err
}

// lateTrees adds the working trees of jobs that have been done for less than so many seconds.
func lateTrees(ctx context.Context, m *Manager, older float64, used map[string]bool) error {
	return m.Look(ctx, func(v *sched.View) {
		for id := range v.Jobs {
			j := &v.Jobs[id]
			if j.State != sched.Done || v.Now.Sub(j.End).Seconds() >= older ||
				!strings.Contains(j.Spec.Task, `"tree":`) {
				continue
			}
			if t, err := task.DecodeTask(j.Spec.Task); err == nil && t.Tree.Sum != "" {
				used[t.Tree.Sum] = true
			}
		}
	})
}

// copies reports whether a job runs a copy of its script or in one of its working tree.
func copies(j jobfile.Job) bool { return j.Task.Script.At > 0 || j.Task.Tree.Root != "" }

// dropScripts removes the scripts that no job which is not done runs, working trees that no job has used for so many
// seconds, since jobs write to them, and what a kill has left, and adds them to doc.
func (m *Manager) dropScripts(ctx context.Context, older float64, doc *api.Cleaned) error {
	m.scripts.mu.Lock()
	defer m.scripts.mu.Unlock()
	dir := shim.State(m.o.Dir)
	digests, left, err := dir.Snapshots()
	if err != nil {
		return err
	}
	used, err := inUse(ctx, m)
	if err == nil {
		err = lateTrees(ctx, m, older, used)
	}
	if err != nil {
		return err
	}
	if len(m.scripts.turns) > 0 { // what was left looks like what is being written
		left = nil
	}
	for _, name := range append(left, digests...) {
		if used[name] || m.scripts.pending[name] > 0 {
			continue
		}
		size, script := dir.SnapshotSize(name), dir.SnapshotName(name)
		if !doc.Dry {
			if size, err = dir.DropSnapshot(name); err != nil {
				return err
			}
		}
		doc.Bytes += size
		doc.Scripts = append(doc.Scripts, script)
	}
	return nil
}
