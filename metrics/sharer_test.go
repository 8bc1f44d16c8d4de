package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trainyard/trainyard/model/power"
	"github.com/trainyard/trainyard/sched"
)

// prices is priceAt as a series.
var prices = sync.OnceValue(func() *power.Series {
	var table strings.Builder
	table.WriteString("start,price\n")
	for i := range 10_000 {
		fmt.Fprintf(&table, "%d,%v\n", 5*i, priceAt(5*second*sched.Time(i)))
	}
	s, err := power.ReadPrices(strings.NewReader(table.String()), "prices")
	if err != nil {
		panic(err)
	}
	return s
})

// drawPower gives n a curve, a table or neither, and now and then a wake delay.
func drawPower(r *rand.Rand, n *sched.NodeSpec) {
	switch r.IntN(4) {
	case 0:
		n.Curve = sched.PowerCurve{Scale: sched.Watts(1000 * r.Float64()), Exponent: 1 + r.Float64()}
	case 1:
		n.Curve.Points = []sched.PowerPoint{{Use: 0, Watts: n.IdleW},
			{Use: .3, Watts: n.IdleW + 200*sched.Watts(r.IntN(2))}, {Use: 1, Watts: n.IdleW + 500}}
	}
	n.Wake = time.Duration(r.IntN(2)*r.IntN(4000)) * time.Millisecond
}

// sharer gives waiting jobs GPUs that others may have as well, under caps, and takes them away or changes caps now and
// then.
type sharer struct {
	*rand.Rand
	wakes int // left
}

// Observe learns nothing.
func (*sharer) Observe(*sched.View, *sched.Event) {}

// SaveJob and the like: it remembers nothing.
func (*sharer) SaveJob(_ sched.JobID, b []byte) []byte { return b }
func (*sharer) Format() string                         { return "sharer/1" }
func (*sharer) SaveRest(b []byte) []byte               { return b }
func (*sharer) LoadJob(sched.JobID, []byte) error      { return nil }
func (*sharer) LoadRest([]byte) error                  { return nil }

// Decide looks at each job once.
func (s *sharer) Decide(v *sched.View, d *sched.Desired) {
	tenants := make([]int, len(v.GPUs))
	waits := false
	for g := range v.GPUs {
		tenants[g] = int(v.GPUs[g].Targets)
	}
	for i := range v.Jobs {
		id, j := sched.JobID(i), &v.Jobs[i]
		switch {
		case !j.Eligible():
		case len(j.Target) == 0:
			waits = true
			var free []sched.GPUID
			for g := range v.GPUs {
				if v.Usable(sched.GPUID(g)) && tenants[g] < v.ShareLimit {
					free = append(free, sched.GPUID(g))
				}
			}
			want := int(j.Spec.GPUs.Want)
			if len(free) < want {
				continue
			}
			s.Shuffle(len(free), func(a, b int) { free[a], free[b] = free[b], free[a] })
			set := free[:want]
			slices.Sort(set)
			t := d.Give(id, set, sched.Reason{Code: sched.WhyStarted})
			t.Share, t.Cap = sched.Shared, sched.Watts(s.IntN(2)*s.IntN(200))
			for _, g := range set {
				tenants[g]++
			}
		case s.IntN(20) == 0 && j.Attempt == sched.Running && v.Now.Sub(j.LastStart) > 5*time.Second:
			d.Give(id, nil, sched.Reason{Code: sched.WhyPreempted})
		case s.IntN(3) == 0 && j.Attempt == sched.Running:
			d.Keep(v, id).Cap = sched.Watts(s.IntN(300))
		}
	}
	if s.wakes--; waits && s.wakes > 0 {
		d.WakeBy(v.Now + 3*second)
	}
}
