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
		for _, o := range []struct{ key, file string }{{"file", t.Output.File}, {"error", t.Output.Error}} {
			path := t.Within(o.file)
			if o.file == "" || good[path] {
				continue
			}
			if err := shim.CheckOutput(path); err != nil {
				return fmt.Errorf("%w: job %s: %s %s: %w", ErrRefused, jobs[i].Spec.Name, o.key, o.file, err)
			}
			good[path] = true
		}
	}
	return nil
}
