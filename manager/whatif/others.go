package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/trace"
)

// mostOthers bounds the jobs that others are taken to hand in, in one simulated future.
const mostOthers = 200

// others returns jobs that others hand in after v, as they did before it: at the mean rate so far, each like some earlier one,
// with work drawn as for any job. What is drawn depends on r alone.
func others(v *sched.View, w *Work, until sched.Time, r *rand.Rand) (list []trace.Job) {
	const few = 10 // there is no rate of so few
	if len(v.Jobs) < few {
		return nil
	}
	gap := float64(v.Now-v.Jobs[0].Arrived) / float64(len(v.Jobs))
	for at := v.Now; len(list) < mostOthers; {
		at = at.Add(time.Duration(min(r.ExpFloat64()*gap, float64(century))))
		if at >= until {
			break
		}
		spec := *v.Jobs[r.IntN(len(v.Jobs))].Spec
		spec.Name, spec.Submit, spec.After, spec.NotBef = fmt.Sprint("later", len(list)), at, nil, 0
		spec.Deadline = 0
		fresh := sched.View{Now: at, Jobs: []sched.Job{{Spec: &spec}}}
		alone := *w
		alone.Steps = nil
		work, _ := alone.Left(&fresh, 0, max(r.Float64(), math.SmallestNonzeroFloat64))
		list = append(list, trace.Job{Spec: spec, Duration: work})
	}
	return list
}
