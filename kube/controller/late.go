package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// lateFor is how long a write may be under way that a leader made before this one took the lead.
const lateFor = 2 * time.Minute

// writeOverLate touches jobs whose status an earlier leader wrote after this one had read it. Nothing of that was
// committed or ordered, but the next leader would take it for what is.
func (s *store) writeOverLate() {
	now := s.clock()
	if s.rounds.settled.IsZero() {
		s.rounds.settled = now.Add(lateFor)
	}
	if now.After(s.rounds.settled) {
		return
	}
	var list v1alpha1.TrainingJobList
	if err := s.api.List(s.ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Debug("jobs cannot be listed", "error", err)
		return
	}
	live := make(map[types.UID]sched.JobID, len(s.live))
	for _, id := range s.live {
		if s.v.Jobs[id].State == sched.Done {
			continue
		}
		live[refOf(s.v.Jobs[id].Spec).uid] = id
	}
	for i := range list.Items {
		j := &list.Items[i]
		id, known := live[j.UID]
		if !known || s.jobs[id].version == j.ResourceVersion {
			continue
		}
		if rec, err := record.Read(j.Status.Record); err == nil && rec.Leader < s.leader {
			s.touch(id)
		}
	}
}
