package share

import (
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
)

// Ensure that a job which is queued while its attempt still stops rises as one that is queued afterwards.
func TestQueuedWhileItStops(t *testing.T) {
	v := &sched.View{Jobs: []sched.Job{{Spec: new(sched.JobSpec), State: sched.Active, Up: true}}}
	var live, fresh book
	for _, b := range []*book{&live, &fresh} {
		b.ByClass(order.Classes{Age: time.Hour})
	}
	live.sync(v, 0)
	v.Jobs[0].Up, v.Jobs[0].State = false, sched.Waiting
	live.sync(v, 0)
	fresh.sync(v, 0)
	if live.class[0] != fresh.class[0] || live.Rises() != fresh.Rises() || live.Rises() == sched.Never {
		t.Errorf("%+v, rises at %v; queued now %+v, at %v", live.class[0], live.Rises(), fresh.class[0], fresh.Rises())
	}
}
