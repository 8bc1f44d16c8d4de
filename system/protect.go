package system

import (
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system/key"
)

// unsaved is what the key of that name says.
func unsaved(s *key.Settings) sched.Unsaved {
	if Unsaved.Get(s) == sched.LeaveUnsaved.String() {
		return sched.LeaveUnsaved
	}
	return sched.StopUnsaved
}

// protect has jobs left alone as the keys min_run, preempt_limit, unsaved, loss_rail and keep_free say.
func protect(k Knowledge, s *key.Settings, stops bool, st *pipeline.Stages) {
	if stops {
		st.Unsaved, st.LossRail, st.KeepFree = unsaved(s), LossRail.Get(s), KeepFree.Get(s)
	}
	rails := restart.Rails{PerHour: PreemptLimit.Get(s)}
	if least := MinRun.Get(s); least.auto {
		rails.MinRun, rails.Restarts = restart.DefaultRails.MinRun, restart.DefaultRails.Restarts
	} else {
		st.MinRun = least.least
	}
	if rails != (restart.Rails{}) {
		guard := &restart.Guard{Rails: rails, Cost: k.restart(s)}
		st.Guard, st.Learn = guard, append(st.Learn, guard)
	}
}
