package system

import (
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/system/key"
)

// protect has jobs left alone as the keys min_run and preempt_limit say.
func protect(k Knowledge, s *key.Settings, st *pipeline.Stages) {
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
