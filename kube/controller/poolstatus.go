package controller

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// spendEvery is how often what was spent is told where nothing else of a pool changes: begins has the engine wake for that while anything
// is rented.
const spendEvery = sched.Time(time.Minute)

// told is what a pool's status says, and since when.
type told struct {
	status v1alpha1.GPUPoolStatus
	at     sched.Time
}

// writePools tells of pools that changed, or spent for a while. It is for people alone: the truth is in the cluster's blob, and an
// error is a line of the log.
func (s *store) writePools() {
	for len(s.pools) < len(s.v.Pools) {
		s.pools = append(s.pools, told{at: sched.None})
	}
	for i := range s.v.Pools {
		if s.leads() != nil { // the next batch tells
			return
		}
		p, old := &s.v.Pools[i], &s.pools[i]
		if p.Spec.Name == "" { // it is gone
			continue
		}
		st := v1alpha1.GPUPoolStatus{Rented: p.Nodes, Target: p.Target, Spend: fmt.Sprintf("%.2f", float64(p.SpentNow(s.v.Now))),
			Message: s.wrong.pools[p.Spec.Name]}
		same := st.Rented == old.status.Rented && st.Target == old.status.Target
		if old.at >= 0 && same && (st == old.status || s.v.Now < old.at+spendEvery) {
			continue
		}
		says := map[string]any{"rented": st.Rented, "target": st.Target, "spend": st.Spend}
		if old.at < 0 || st.Message != old.status.Message { // else it stays what the driver says of renting
			says["message"] = st.Message
		}
		body, err := json.Marshal(map[string]any{"status": says})
		if err == nil {
			pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.Name}}
			err = client.IgnoreNotFound(s.api.Status().Patch(s.ctx, pool, client.RawPatch(types.MergePatchType, body)))
		}
		if err != nil {
			s.log.Warn("what became of a pool cannot be told", "pool", p.Spec.Name, "error", err)
			continue
		}
		*old = told{st, s.v.Now}
	}
}
