package whatif_test

import (
	"context"
	"fmt"
	"time"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/memory"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/stage/place"
	"github.com/trainyard/trainyard/whatif"
)

// A cluster of two GPUs, on which one job runs and one waits for both.
func Example() {
	fresh := func() (sched.Decider, error) {
		return pipeline.New(pipeline.Stages{Order: order.FIFO{}, Place: place.Count{}}), nil
	}
	v := sched.View{Now: 600e9, Version: 4, ShareLimit: 1, GPUs: make([]sched.GPU, 2),
		Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 2, Pool: sched.None}}},
		Jobs: []sched.Job{
			{Spec: &sched.JobSpec{GPUs: sched.Rigid(1)}, State: sched.Active, Attempt: sched.Running, Attempts: 1,
				Up:   true,
				GPUs: []sched.GPUID{0}, Target: []sched.GPUID{0}, Rate: 1},
			{Spec: &sched.JobSpec{GPUs: sched.Rigid(2)}, State: sched.Waiting, Arrived: 600e9, FirstStart: sched.None,
				LastStart: sched.None},
		}}
	dec, _ := fresh()
	m, err := whatif.Take(eventlog.Header{}, &v, dec, fresh) // as a daemon does between two batches
	if err != nil {
		fmt.Println(err)
		return
	}
	steps := func(j sched.JobID) (time.Duration, bool) { return []time.Duration{5 * time.Minute, time.Hour}[j], true }
	f, err := m.Forecast(context.Background(), &whatif.Work{Steps: steps}, whatif.ForecastOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	e := f.Of(1)
	fmt.Println("job 1 starts at", e.Start.P50, "and ends at", e.End.P50, "by", e.Basis)
	r, err := m.Remedies(context.Background(), 1, whatif.RemedyOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, x := range r.List {
		fmt.Println("it would start now with", x.Change, x.Spec.GPUs.Want, "on", x.GPUs)
	}
	// Output:
	// job 1 starts at 900s and ends at 4500s by steps
	// it would start now with gpus 1 on [1]
}

// A view that contradicts itself is refused.
func ExampleNewMoment() {
	v := sched.View{GPUs: make([]sched.GPU, 3)}
	_, err := whatif.NewMoment(eventlog.Header{}, v, memory.Memory{}, nil)
	fmt.Println(err)
	// Output: whatif: engine: restore: 3 GPUs, 0 of them of nodes
}
