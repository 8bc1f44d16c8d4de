package straggler_test

import (
	"fmt"
	"time"

	"github.com/trainyard/trainyard/model/straggler"
	"github.com/trainyard/trainyard/sched"
)

// Two gangs run on a node of four GPUs. GPU 2 throttles: the gang on it takes half as long again, and as nothing
// distinguishes its two GPUs they share the blame.
func Example() {
	d, err := straggler.New(straggler.Params{})
	if err != nil {
		panic(err)
	}
	d.Node(0, 0, 0, 4)
	pair := straggler.Kind{Model: "resnet50", GPUs: 2, Nodes: 1}
	d.Begin(0, 1, pair, []sched.GPUID{0, 1}, 1)
	d.Begin(0, 2, pair, []sched.GPUID{2, 3}, 1)
	for i := range 20 {
		now := sched.Time(i+1) * sched.Time(time.Minute)
		seconds := 0.25 + 0.001*float64(i%3)
		d.Report(now, 1, seconds)
		if i >= 15 {
			seconds *= 1.5
		}
		for _, c := range d.Report(now, 2, seconds) {
			fmt.Printf("after %v: GPU %d takes %.2f times as long, share %.1f of the blame\n", time.Duration(now),
				c.GPU, c.Factor, c.Share)
		}
	}
	// Output:
	// after 18m0s: GPU 2 takes 1.49 times as long, share 0.5 of the blame
	// after 18m0s: GPU 3 takes 1.49 times as long, share 0.5 of the blame
}
