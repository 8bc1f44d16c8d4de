package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/backup"
	"github.com/trainyard/trainyard/sched"
)

// Lost is a job that a backup has without something that it cannot run without: it is held.
type Lost struct {
	Job  sched.JobID
	Name string
	Why  string
}

// need is a part that a job cannot run without.
type need struct {
	job  sched.JobID
	name string // of the job
	part string // of a backup
}

// needsOf are the needs of a job, unless it is done.
func needsOf(id sched.JobID, j *sched.Job) (needs []need) {
	t, err := task.DecodeTask(j.Spec.Task)
	if err != nil || j.State == sched.Done {
		return nil
	}
	if t.Inherit != "" {
		needs = append(needs, need{id, j.Spec.Name, backup.Env(t.Inherit)})
	}
	if t.Script.Sum != "" {
		needs = append(needs, need{id, j.Spec.Name, backup.Script(t.Script.Sum, filepath.Base(t.ScriptPath()))})
	}
	if t.Tree.Sum != "" {
		needs = append(needs, need{id, j.Spec.Name, backup.Script(t.Tree.Sum, shim.Tree)})
	}
	return needs
}

// inUse returns the digests of the environments and scripts of jobs that are not done.
func inUse(ctx context.Context, m *Manager) (map[string]bool, error) {
	used := make(map[string]bool)
	err := m.Look(ctx, func(v *sched.View) {
		for id := range v.Jobs {
			for _, n := range needsOf(sched.JobID(id), &v.Jobs[id]) {
				used[strings.Split(n.part, "/")[1]] = true
			}
		}
	})
	return used, err
}

// addNeeds adds what jobs need and a folder has to a backup, once each. What cannot be had otherwise is lost.
func addNeeds(w *backup.Writer, dir shim.State, needs []need) (lost []Lost, err error) {
	tried := make(map[string]error)
	for _, n := range needs {
		why, known := tried[n.part]
		if !known {
			var text []byte
			if text, why = partText(dir, n.part); why == nil {
				err = w.Add(n.part, strings.NewReader(string(text)))
			} else if !errors.Is(why, shim.ErrEnvLost) && !errors.Is(why, shim.ErrScriptLost) {
				err = why
			}
			if err != nil {
				return nil, err
			}
			tried[n.part] = why
		}
		if why != nil {
			lost = n.lostBy(lost, why)
		}
	}
	return lost, nil
}

// lostBy adds that a job lacks what it needs: one entry a job, as the needs of one follow each other.
func (n *need) lostBy(lost []Lost, why error) []Lost {
	if last := len(lost) - 1; last >= 0 && lost[last].Job == n.job {
		lost[last].Why += "; " + why.Error()
		return lost
	}
	return append(lost, Lost{n.job, n.name, why.Error()})
}

// partText returns the bytes of a part that jobs need, as a folder has it.
func partText(dir shim.State, part string) (text []byte, err error) {
	digest, name, isEnv := backup.Need(part)
	if isEnv {
		text, _, err = dir.EnvText(digest)
	} else {
		_, text, err = dir.ScriptText(digest, name)
	}
	return text, err
}

// keepPart keeps a part that jobs need in a folder, durably. It must be what its name says.
func keepPart(dir shim.State, part string, r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	digest, name, isEnv := backup.Need(part)
	if isEnv {
		err = dir.KeepEnvText(digest, text)
	} else {
		err = dir.KeepScriptText(digest, name, text)
	}
	if errors.Is(err, shim.ErrOther) {
		return fmt.Errorf("%s: %w: %w", part, err, backup.ErrBroken)
	}
	return err
}

// without returns the jobs that need what is not among the parts of a backup.
func without(parts map[string]bool, needs []need) (lost []Lost) {
	for _, n := range needs {
		if !parts[n.part] {
			why := shim.ErrScriptLost
			if _, _, isEnv := backup.Need(n.part); isEnv {
				why = shim.ErrEnvLost
			}
			lost = n.lostBy(lost, why)
		}
	}
	return lost
}
