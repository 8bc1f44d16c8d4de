package controller

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
)

// observer is a sink that says what would be done, and has nothing done: of each job where it would run, or why it
// would wait, and of all together how many GPUs would be in use. It says what is another than before.
type observer struct {
	log    *slog.Logger
	v      *sched.View
	dec    sched.Decider
	origin time.Time

	tally tally
	said  []string // of each job, by JobID
	sum   string
}

var (
	_ eventlog.Sink    = (*observer)(nil)
	_ eventlog.Batcher = (*observer)(nil)
)

// Log reports orders that are about no job. Those about jobs follow from what is reported of them.
func (o *observer) Log(v *sched.View, e *sched.Event) {
	o.tally.note(v, e)
	switch {
	case e.Kind != sched.Ordered:
	case sched.ActionKind(e.Code) == sched.Rent:
		o.log.Info("would rent", "pool", v.Pools[e.Pool].Spec.Name, "nodes", int(e.Value))
	case sched.ActionKind(e.Code) == sched.SetNode:
		o.log.Info("would bring a node to a state", "node", v.Nodes[e.Node].Spec.Name, "state",
			sched.NodeState(e.Value))
	}
}

// BeginBatch does nothing.
func (o *observer) BeginBatch() {}

// EndBatch says what a decision has changed.
func (o *observer) EndBatch() error {
	brief := pipeline.NewBrief(o.v, o.dec)
	for len(o.said) < len(o.v.Jobs) {
		o.said = append(o.said, "")
	}
	reported := 0
	for id := range o.v.Jobs {
		j := &o.v.Jobs[id]
		if refOf(j.Spec).uid == "" { // forgotten
			continue
		}
		what, name, detail := o.outcome(brief, sched.JobID(id))
		if line := what + detail; line != o.said[id] {
			o.said[id] = line
			// by the order of the system, see store.prepare
			if reported++; reported <= fullReasons && what == wouldWait {
				detail = o.reason(sched.JobID(id), pipeline.Why(o.v, o.dec, sched.JobID(id)))
			}
			o.log.Info(what, "job", j.Spec.User+"/"+j.Spec.Name, name, detail)
		}
	}
	o.tally.settle(o.v)
	gpus, run, wait := o.tally.figures()
	if line := fmt.Sprint(gpus, run, wait); line != o.sum {
		o.sum = line
		o.log.Info("in all", "gpus", gpus, "run", run, "wait", wait)
	}
	return nil
}

const wouldWait = "would wait"

// outcome says what would become of a job, with the name of the detail.
func (o *observer) outcome(brief *pipeline.Brief, id sched.JobID) (what, name, detail string) {
	switch j := &o.v.Jobs[id]; {
	case j.State == sched.Done && j.Outcome == sched.RejectedJob:
		return "would refuse", "why", o.reason(id, brief.Why(id))
	case j.State == sched.Done:
		return "is done", "outcome", j.Outcome.String()
	case j.Up && slices.Equal(j.GPUs, j.Target):
		return "runs", "on", o.names(j.GPUs)
	case len(j.Target) > 0:
		return "would run", "on", o.names(j.Target)
	case len(j.GPUs) > 0:
		return "would stop", "on", o.names(j.GPUs)
	default:
		return wouldWait, "why", o.reason(id, brief.Why(id))
	}
}

// reason is why a job would be where it is.
func (o *observer) reason(id sched.JobID, w explain.Waiting) string {
	return sentences(o.v, o.origin).Sentence(id, &w)
}

func (o *observer) names(gpus []sched.GPUID) string {
	list := make([]string, len(gpus))
	for i, g := range gpus {
		list[i] = record.GPUName(o.v, g)
	}
	return strings.Join(list, " ")
}
