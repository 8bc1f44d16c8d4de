package system

import (
	"github.com/trainyard/trainyard/model/restart"
	"github.com/trainyard/trainyard/pipeline"
)

// AutoMinRun is the value of the key min_run that follows what restarts cost.
const AutoMinRun = "auto"

// protect has jobs left alone as the keys min_run and preempt_limit say.
func (s *Settings) protect(k Knowledge, st *pipeline.Stages) {
	rails := restart.Rails{PerHour: s.Int("preempt_limit", 0)}
	if s.Text("min_run") == AutoMinRun {
		rails.MinRun, rails.Restarts = restart.DefaultRails.MinRun, restart.DefaultRails.Restarts
	} else {
		st.MinRun = s.seconds("min_run", 0, ", or auto")
	}
	if rails != (restart.Rails{}) {
		guard := &restart.Guard{Rails: rails, Cost: k.restart(s)}
		st.Guard, st.Learn = guard, append(st.Learn, guard)
	}
}
