package allocate

import (
	"math"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that what is remembered of utility is loaded as it was saved, and that what is damaged is refused.
func TestAutoscaleMemory(t *testing.T) {
	a := &Autoscale{nodes: 300, seen: []float64{.25, .5}, looked: sched.Time(7 * time.Minute)}
	saved := a.SaveRest(nil)
	var b Autoscale
	if err := b.LoadRest(saved); err != nil || b.nodes != 300 || b.looked != a.looked || len(b.seen) != 2 ||
		b.seen[1] != .5 {
		t.Errorf("%+v, %v, want %+v", b, err, *a)
	}
	for _, bad := range [][]byte{nil, saved[:1], saved[:2], saved[:len(saved)-1],
		append(saved, make([]byte, 8*Intervals)...),
		(&Autoscale{seen: []float64{math.NaN()}}).SaveRest(nil)} {
		if err := b.LoadRest(bad); err == nil {
			t.Errorf("%d of %d bytes are taken", len(bad), len(saved))
		}
	}
}
