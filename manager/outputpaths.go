package manager

import (
	"fmt"

	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// CheckOutputs refuses jobs whose output could not be written to the files that they name; errors are ErrRefused.
func CheckOutputs(jobs []jobfile.Job) error {
	good := make(map[string]bool)
	for i := range jobs {
		t := &jobs[i].Task
		for _, pattern := range []string{t.Output.File, t.Output.Error} {
			path := t.Within(pattern)
			if pattern == "" || good[path] {
				continue
			}
			if err := shim.CheckOutput(path); err != nil {
				return fmt.Errorf("%w: job %s: %w", ErrRefused, jobs[i].Spec.Name, err)
			}
			good[path] = true
		}
	}
	return nil
}
