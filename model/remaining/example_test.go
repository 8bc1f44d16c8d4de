package remaining_test

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/model/remaining"
	"github.com/trainyard/trainyard/sched"
)

// Five jobs of a model have finished. A sixth has run for longer than most of them: it is likely to be one of the long
// ones.
func Example() {
	e := remaining.New()
	spec := sched.JobSpec{Model: "resnet50"}
	v := sched.View{Jobs: []sched.Job{{Spec: &spec}}}
	for _, minutes := range []int{10, 10, 20, 90, 120} {
		e.Observe(&v, &sched.Event{Kind: sched.AttemptEnded, Outcome: sched.Finished,
			Work: time.Duration(minutes) * time.Minute})
	}
	fmt.Println("at its start:", e.Remaining(&v, 0))
	v.Jobs[0].Work = 30 * time.Minute
	fmt.Println("after 30 minutes:", e.Remaining(&v, 0))
	fmt.Println("as likely less as more than", e.Residual(&v, 0, 0.5))
	// Output:
	// at its start: 50m0s
	// after 30 minutes: 1h15m0s
	// as likely less as more than 1h15m0s
}
