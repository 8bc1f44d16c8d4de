package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

// silent says since when a node of a job's attempt does not answer, and what is to be done if it is dead; "" where all
// do. Silence ends nothing: on a node that is merely cut off its processes may be at work still.
func (s *store) silent(j *sched.Job) string {
	seen := sched.NodeID(sched.None)
	for _, g := range j.GPUs {
		id := s.v.GPUs[g].Node
		if s.v.GPUs[g].State != sched.GPUStuck || id == seen {
			continue
		}
		seen = id
		name := s.v.Nodes[id].Spec.Name
		if since, away := s.away(name); away {
			return fmt.Sprintf("%s does not answer since %s; nothing is ended: if it is dead, delete the node or "+
				"taint it out-of-service", name, since)
		}
	}
	return ""
}

// away reports whether a node is not ready, and says since when.
func (s *store) away(name string) (since string, away bool) {
	var node corev1.Node
	if s.api.Get(s.ctx, types.NamespacedName{Name: name}, &node) != nil {
		return "", false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return text.Clock(c.LastTransitionTime.Time, s.clock()), true
		}
	}
	return "", false
}
