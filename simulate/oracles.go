package simulate

import (
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// oracles is what a system learns from oracles, which no one knows of real jobs before they end.
type oracles struct {
	work   sched.Remainer
	sizes  bool // the work left of some job was asked for
	curves system.Asked
}

// Remaining returns the work that job j has left, and notes that it was asked for.
func (o *oracles) Remaining(v *sched.View, j sched.JobID) time.Duration {
	o.sizes = true
	return o.work.Remaining(v, j)
}

// knows lists what a system knew by an oracle: sizes, curves.
func (o *oracles) knows() (list []string) {
	if o == nil {
		return nil
	}
	if o.sizes {
		list = append(list, "sizes")
	}
	if o.curves.Curves {
		list = append(list, "curves")
	}
	return list
}
