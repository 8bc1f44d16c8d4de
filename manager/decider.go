package manager

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Decider returns the named system for real jobs. What their submitters said is all it is told: the work of a job is its
// wall time. A system that needs it is refused unless every job states one, and so is one that rents nodes or has jobs share
// GPUs, which real jobs cannot do yet.
func Decider(name string, settings map[string]string, jobs []sched.JobSpec) (sched.Decider, error) {
	info, err := system.Named(name)
	if err != nil {
		return nil, err
	}
	if info.Rents {
		return nil, fmt.Errorf("system: %s rents nodes, and those of this machine are its own; want another", name)
	}
	var k system.Knowledge
	missing := ""
	for i := range jobs {
		k.MostGPUs = max(k.MostGPUs, int(jobs[i].GPUs.Max))
		if jobs[i].WallTime == 0 && missing == "" {
			missing = jobs[i].Name
		}
	}
	k.PerNode = k.MostGPUs // one machine
	if missing == "" {
		k.Work = stated{}
	}
	sys, err := info.Build(k, system.NewSettings(settings), nil)
	if err != nil && missing != "" {
		k.Work = stated{}
		if _, other := info.Build(k, system.NewSettings(settings), nil); other == nil {
			err = fmt.Errorf("%w (job %s states no wall_time)", err, missing)
		}
	}
	if err == nil && sys.ShareLimit > 1 {
		err = fmt.Errorf("system: %s has jobs share GPUs, which real jobs cannot do yet; want another", name)
	}
	return sys.Decider, err
}

// stated takes the wall time that a submitter stated as the work of a job.
type stated struct{}

var _ sched.Remainer = stated{}

// Remaining is what is left of the wall time, by the progress reported; 0 for a job that takes longer than stated.
func (stated) Remaining(v *sched.View, j sched.JobID) time.Duration {
	job := v.Job(j)
	return max(job.Spec.WallTime-job.WorkNow(v.Now), 0)
}
