package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/trainyard/trainyard/sched"
)

// stale returns why an event of the driver is not folded, or "": it repeats what is known, or speaks of an attempt that
// is over or of what does not exist. Drivers answer late and twice; what contradicts the state beyond that is a bug.
func (s *State) stale(e *sched.Event) string {
	v, f := &s.view, e.Form()
	switch {
	case f.Job == sched.Named && misnames(f.Job, int32(e.Job), len(v.Jobs)):
		return fmt.Sprintf("job %d is not known", e.Job)
	case f.Node == sched.Named && misnames(f.Node, int32(e.Node), len(v.Nodes)):
		return fmt.Sprintf("node %d is not known", e.Node)
	case f.Attempt:
		return staleAttempt(v, e)
	}
	if e.Kind == sched.JobChanged {
		return staleChange(v, e)
	}
	return staleCluster(v, &s.slots, e)
}

// staleCluster is stale for events about nodes, GPUs, pools and prices.
func staleCluster(v *sched.View, slots *slots, e *sched.Event) string {
	switch e.Kind {
	case sched.NodeJoined:
		return staleJoin(v, slots, e)
	case sched.GPUChanged:
		if !(e.Value >= 0) || int(e.Value) >= len(v.GPUs) {
			return fmt.Sprintf("GPU %v is not known", e.Value)
		}
	case sched.PoolChanged:
		if e.Pool < 0 || int(e.Pool) > len(v.Pools) {
			return fmt.Sprintf("pool %d is not known", e.Pool)
		}
	case sched.PriceChanged:
		return stalePrice(v, e)
	case sched.Measured:
		if int(e.Node) >= len(v.Nodes) || int(e.Job) >= len(v.Jobs) || e.Node < sched.None || e.Job < sched.None {
			return fmt.Sprintf("node %d or job %d is not known", e.Node, e.Job)
		}
	}
	return ""
}

func staleJoin(v *sched.View, slots *slots, e *sched.Event) string {
	id, known := slots.byName[e.NodeSpec.Name]
	if known && (v.Nodes[id].State == sched.NodeUp || v.Nodes[id].State == sched.NodeDraining) {
		return fmt.Sprintf("node %q is up already", e.NodeSpec.Name)
	}
	if int(e.NodeSpec.Pool) >= len(v.Pools) {
		return fmt.Sprintf("node %q is of pool %d, which is not known", e.NodeSpec.Name, e.NodeSpec.Pool)
	}
	return ""
}

func staleChange(v *sched.View, e *sched.Event) string {
	if v.Jobs[e.Job].State == sched.Done {
		return fmt.Sprintf("job %d is done", e.Job)
	}
	if err := e.Change.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func stalePrice(v *sched.View, e *sched.Event) string {
	switch {
	case e.Pool != sched.None && (e.Pool < 0 || int(e.Pool) >= len(v.Pools)):
		return fmt.Sprintf("pool %d is not known", e.Pool)
	case e.Pool == sched.None && e.Node != sched.None && (e.Node < 0 || int(e.Node) >= len(v.Nodes)):
		return fmt.Sprintf("node %d is not known", e.Node)
	case !(e.Value >= 0 && e.Value <= math.MaxFloat64):
		return fmt.Sprintf("price %v, want one >= 0", e.Value)
	}
	return ""
}

func staleAttempt(v *sched.View, e *sched.Event) string {
	j := &v.Jobs[e.Job]
	switch {
	case e.Attempt != j.Attempts || !j.HoldsDevices():
		return fmt.Sprintf("attempt %d of job %d is over", e.Attempt, e.Job)
	case slices.ContainsFunc(e.GPUs, func(g sched.GPUID) bool { return g < 0 || int(g) >= len(v.GPUs) }):
		return fmt.Sprintf("GPUs %v, want some of %d", e.GPUs, len(v.GPUs))
	case (e.Kind == sched.AttemptStarted || e.Kind == sched.StartFailed) && j.Up:
		return fmt.Sprintf("attempt %d of job %d has started already", e.Attempt, e.Job)
	}
	return ""
}
