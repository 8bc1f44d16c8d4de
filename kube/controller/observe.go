package controller

import (
	"fmt"
	"log/slog"

	"github.com/trainyard/trainyard/engine"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// observer is a sink that tells what would be done, and has nothing done.
type observer struct{ log *slog.Logger }

var _ engine.Sink = observer{}

// Log tells of decisions.
func (o observer) Log(v *sched.View, e *sched.Event) {
	if e.Job == sched.None || int(e.Job) >= len(v.Jobs) {
		return
	}
	spec := v.Jobs[e.Job].Spec
	job := spec.User + "/" + spec.Name
	switch e.Kind {
	case sched.Decided:
		var gpus []string
		for _, g := range e.GPUs {
			gpus = append(gpus, record.GPUName(v, g))
		}
		o.log.Info("would give GPUs", "job", job, "gpus", fmt.Sprint(gpus), "why", e.Why.Code.String())
	case sched.Refused, sched.Rejected:
		o.log.Info("would refuse", "job", job, "why", e.Why.Code.String(), "text", e.Text)
	}
}
