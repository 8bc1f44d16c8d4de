package jobfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Inline returns the job that a command line describes: a command on GPUs in a folder, with the defaults of a file for
// all else. Its name may be "": then whoever takes it numbers it. dir is relative to the folder that the program is in;
// "" is that folder. Errors have the form "jobfile: what, want WHAT".
func Inline(command []string, gpus sched.Range, name, dir string) (Job, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return Job{}, fmt.Errorf("jobfile: dir %s: %w, want a path", strictyaml.Quote(dir), err)
	}
	e := newEntry(path)
	e.task.Command = command
	switch err := e.task.Validate(); {
	case name != "" && misnamed(name) != "":
		return Job{}, errors.New("jobfile: " + misnamed(name))
	case gpus.Min < 1 || gpus.Max > MaxGPUs || gpus.Want < gpus.Min || gpus.Want > gpus.Max:
		return Job{}, fmt.Errorf("jobfile: gpus %d..%d with default %d, want min <= default <= max from 1 to %d",
			gpus.Min, gpus.Max, gpus.Want, MaxGPUs)
	case len(command) == 0:
		return Job{}, fmt.Errorf("jobfile: no command, want one, as in: python train.py")
	case err != nil:
		return Job{}, fmt.Errorf("jobfile: %w", err)
	case e.task.CheckLauncher() != nil:
		return Job{}, fmt.Errorf("jobfile: %w", e.task.CheckLauncher())
	}
	e.spec.GPUs, e.spec.Name = gpus, name
	return Job{Spec: e.spec, Task: e.task}, nil
}

// misnamed says why s may not name a job, see nameWanted; "" = it may. Logs written before numbers were refused have
// jobs of such names, which are reached by their own numbers alone.
func misnamed(s string) string {
	switch {
	case s == "" || len(s) > MaxName || strings.Trim(s, nameChars) != "" || strings.Trim(s[:1], "._-") == "" ||
		strings.Contains(s, ".."):
		return fmt.Sprintf("name %s, want %s", strictyaml.Quote(s), nameWanted)
	case IsNumber(s):
		return fmt.Sprintf("name %s is a number, want a letter, _, - or dot in it: a number means the job that has it",
			strictyaml.Quote(s))
	}
	return ""
}

// IsNumber reports whether s is made of digits: where a job is asked for, that is no name.
func IsNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
