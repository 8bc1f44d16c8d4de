package manager

import (
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/procs"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/system"
)

// CanLimit reports whether jobs of this machine can be held to their cpus and memory.
var CanLimit = sync.OnceValue(func() bool { return procs.CanLimit(procs.Root()) })

// NoLimits says that they cannot, and what follows.
const NoLimits = "limits: best-effort: no cgroup with memory and cpu may be made here; cpus and memory of jobs are " +
	"counted, and no job is held to them"

// fitsMachine refuses jobs that ask for more processors or memory than the machine has, or to be held to them where
// that cannot be; errors are ErrRefused.
func (o *Options) fitsMachine(jobs []jobfile.Job) error {
	info, err := system.Named(o.System)
	if err != nil {
		return err
	}
	for i := range jobs {
		s, t := &jobs[i].Spec, &jobs[i].Task
		width := float32(s.GPUs.Want)
		if info.Batches { // it chooses widths as well
			width = float32(s.GPUs.Min)
		}
		switch have := o.Machine; {
		case have.CPUs > 0 && s.CPUs*width > have.CPUs:
			return fmt.Errorf("%w: job %s needs %g CPUs, there are %g: it would never start", ErrRefused, s.Name,
				s.CPUs*width, have.CPUs)
		case have.MemoryGB > 0 && s.MemoryGB*width > have.MemoryGB:
			return fmt.Errorf("%w: job %s needs %s GB of memory, there are %s: it would never start", ErrRefused,
				s.Name, gigabytes(s.MemoryGB*width), gigabytes(have.MemoryGB))
		case t.Limits == task.Enforced && !CanLimit():
			return fmt.Errorf("%w: job %s is to be held to its cpus and memory, and no cgroup with these may be made "+
				"here, want limits: best-effort", ErrRefused, s.Name)
		}
	}
	return nil
}

// gigabytes writes an amount of memory with two digits behind the point at most.
func gigabytes(x float32) string {
	return strconv.FormatFloat(math.Round(float64(x)*100)/100, 'f', -1, 64)
}
