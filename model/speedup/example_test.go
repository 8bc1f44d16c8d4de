package speedup_test

import (
	"fmt"
	"strings"

	"github.com/trainyard/trainyard/model/speedup"
	"github.com/trainyard/trainyard/sched"
)

// A model whose updates take 10 ms and 1 ms per sample, and an all-reduce on top; at most 64 samples fit on a GPU.
func Example() {
	app := &speedup.Trainer{
		Time: speedup.Additive{Process: speedup.Affine{Fixed: .010, PerSample: .001},
			Reduce: speedup.Ring{Bytes: 20e6, Bandwidth: 1e9}},
		Worth:  speedup.Samples{1e6},
		Limits: speedup.Limits{Start: 32, Max: 128, MinPerGPU: 1, MaxPerGPU: 64},
	}
	curve := speedup.ChainOf(app, 8, 4, sched.BatchRange{})[0]
	for gpus := 1; gpus <= 4; gpus++ {
		fmt.Printf("%d GPUs: batch %d, %.0f samples/s, speedup %.2f\n", gpus, curve.Batch[gpus], curve.Speed[gpus],
			curve.Speed[gpus]/curve.Speed[1])
	}
	// Output:
	// 1 GPUs: batch 64, 865 samples/s, speedup 1.00
	// 2 GPUs: batch 128, 1362 samples/s, speedup 1.57
	// 3 GPUs: batch 128, 1607 samples/s, speedup 1.86
	// 4 GPUs: batch 128, 1778 samples/s, speedup 2.06
}

func ExampleMeter() {
	app := speedup.Stages{{Size: 100, Law: speedup.Power{Exponent: .5}}, {Size: 60, Law: speedup.Amdahl{Parallel: .5}}}
	job := &sched.JobSpec{Model: "toy", GPUs: sched.Range{Min: 1, Want: 4, Max: 16}}
	m, err := speedup.NewMeter(app, job, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	rate, until := m.Rate(0, speedup.Way{GPUs: 16, Nodes: 4})
	fmt.Printf("%v of work; at first %.0f times as fast on 16 GPUs, up to %v\n", m.Duration(), rate, until)
	// Output:
	// 1m27.5s of work; at first 2 times as fast on 16 GPUs, up to 50s
}

func ExampleReadThroughputs() {
	const table = "global_batch_size,1,2,4\n64,6.8,11.8,18.3\n128,3.7,6.6,11.2\n"
	x, err := speedup.ReadThroughputs(strings.NewReader(table), "resnet50.csv")
	if err != nil {
		fmt.Println(err)
		return
	}
	w, speed := x.Best(0, 4, 1, sched.BatchRange{})
	fmt.Printf("on 4 GPUs: batch %d, %.0f samples/s\n", w.Batch, speed)
	// Output:
	// on 4 GPUs: batch 128, 1434 samples/s
}
