package cluster_test

import (
	"fmt"
	"log"
	"time"

	"github.com/trainyard/trainyard/cluster"
)

func ExampleLoad() {
	c, err := cluster.Load("10x8:a100+4x4:t4")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c, c.GPUs(), c.Types, c.Nodes[10].Name)
	_, err = cluster.Load("15by4")
	fmt.Println(err)
	// Output:
	// 10x8:a100+4x4:t4 96 [a100 t4] node10
	// cluster: "15by4": want NODESxGPUS such as 15x4 or 15x4:v100, or a YAML file
}

func ExampleParse() {
	_, err := cluster.Parse([]byte("nodes:\n  - gpu: 4\n"), "lab.yaml")
	fmt.Println(err)
	c, err := cluster.Parse([]byte("nodes:\n  - {gpus: 4, count: 3, rack: r1}\n"), "lab.yaml")
	fmt.Println(c, err, c.Racks[c.Nodes[2].Rack])
	// Output:
	// cluster: lab.yaml:2:5: unknown key "gpu" (did you mean "gpus"?), want one of count, rack, racks, gpus, type, name, cpus, memory_gb, gpu_memory_gb, sharing, power, price_per_hour
	// lab.yaml (3 nodes, 12 GPUs) <nil> r1
}

func ExampleOutages() {
	o := cluster.NewOutages(cluster.Failures{MTBF: 720 * time.Hour, Repair: 4 * time.Hour, Seed: 7}, 15)
	down, node, _ := o.Next()
	for {
		at, n, up := o.Next()
		if n == node {
			fmt.Println(up, at.Sub(down))
			return
		}
	}
	// Output: true 4h0m0s
}
