package jobfile

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Inline returns the job that a command line describes: a command on GPUs in a folder, with the defaults of a file for
// all else. Its name may be "": then whoever takes it numbers it. dir is relative to the folder that the program is in; "" is
// that folder. Errors have the form "jobfile: what, want wish".
func Inline(command []string, gpus sched.Range, name, dir string) (Job, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return Job{}, fmt.Errorf("jobfile: dir %s: %w, want a path", strictyaml.Quote(dir), err)
	}
	e := newEntry(path)
	e.task.Command = command
	switch err := e.task.Validate(); {
	case name != "" && !isName(name):
		return Job{}, fmt.Errorf("jobfile: name %s, want %s", strictyaml.Quote(name), nameWish)
	case gpus.Min < 1 || gpus.Max > MaxGPUs || gpus.Want < gpus.Min || gpus.Want > gpus.Max:
		return Job{}, fmt.Errorf("jobfile: gpus %d..%d with default %d, want min <= default <= max from 1 to %d", gpus.Min, gpus.Max, gpus.Want, MaxGPUs)
	case len(command) == 0:
		return Job{}, fmt.Errorf("jobfile: no command, want one, as in: python train.py")
	case err != nil:
		return Job{}, fmt.Errorf("jobfile: %w", err)
	}
	e.spec.GPUs, e.spec.Name = gpus, name
	return Job{Spec: e.spec, Task: e.task}, nil
}

// isName reports whether s may name a job, see nameWish.
func isName(s string) bool {
	return s != "" && len(s) <= MaxName && strings.Trim(s, nameChars) == "" && strings.Trim(s[:1], "._-") != "" && !strings.Contains(s, "..")
}
