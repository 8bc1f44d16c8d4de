package pal

import (
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// Watcher knows which GPUs are slow now.
type Watcher interface {
	sched.Observer
	sched.Reviser
	sched.Provisioner
}

// Watched has a system keep its jobs from the GPUs that w finds slow: w revises the scores by which they are placed,
// where there are any, and asks for quarantines.
func Watched(of pipeline.Stages, w Watcher) pipeline.Stages {
	of.Provision = append(of.Provision, w)
	return of
}
