package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// spendEvery is how often what was spent is reported where nothing else of a pool changes: starts has the engine wake
// for that while anything is rented.
const spendEvery = sched.Time(time.Minute)

// said is what a pool's status says, and since when.
type reported struct {
	status v1alpha1.GPUPoolStatus
	at     sched.Time
}

// patchPool writes fields of the status of a pool, if it is there.
func patchPool(ctx context.Context, api client.Client, name string, fields map[string]any) error {
	body, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		return err
	}
	pool := &v1alpha1.GPUPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return client.IgnoreNotFound(api.Status().Patch(ctx, pool, client.RawPatch(types.MergePatchType, body)))
}

// judgePools has each pool say what is wrong with it, and no more what an earlier leader said. From then on its message
// is the driver's, which starts after that.
func (c *Controller) judgePools(ctx context.Context, in *inventory) {
	for i := range in.pools {
		p := &in.pools[i]
		is := in.wrong.pools[p.Name]
		if is != "" {
			c.o.Log.Warn("a pool contradicts what there is", "pool", p.Name, "what", is)
		}
		if is == p.Status.Message || c.o.Observe || c.o.Held() != nil {
			continue
		}
		if err := patchPool(ctx, c.o.Client, p.Name, map[string]any{"message": is}); err != nil {
			c.o.Log.Warn("what is wrong with a pool cannot be reported", "pool", p.Name, "error", err)
		}
	}
}

// writePools reports pools that changed, or spent for a while. It is for people alone: the truth is in the cluster's
// blob, and an error is a line of the log.
func (s *store) writePools() {
	for len(s.pools) < len(s.v.Pools) {
		s.pools = append(s.pools, reported{at: sched.None})
	}
	for i := range s.v.Pools {
		p, old := &s.v.Pools[i], &s.pools[i]
		if p.Spec.Name == "" { // it is gone
			continue
		}
		st := v1alpha1.GPUPoolStatus{Rented: p.Nodes, Target: p.Target,
			Spend: fmt.Sprintf("%.2f", float64(p.SpentNow(s.v.Now)))}
		same := st.Rented == old.status.Rented && st.Target == old.status.Target
		if old.at >= 0 && same && (st == old.status || s.v.Now < old.at+spendEvery) {
			continue
		}
		err := s.call(func(ctx context.Context) error {
			return patchPool(ctx, s.api, p.Spec.Name,
				map[string]any{"rented": st.Rented, "target": st.Target, "spend": st.Spend})
		})
		if errors.Is(err, ErrFenced) || s.ctx.Err() != nil { // the next batch says so
			return
		}
		if err != nil {
			s.log.Warn("what became of a pool cannot be reported", "pool", p.Spec.Name, "error", err)
			continue
		}
		*old = reported{st, s.v.Now}
	}
}
