// Package cluster reads what a cluster consists of: nodes, GPU types, racks, host resources, power, prices and how
// often nodes fail. Load takes either a shorthand, as in 15x4, 15x4:v100 or 10x8:a100+4x4:t4 (nodes x GPUs per node,
// and the GPU type), or the path of a YAML file. This is a complete file; only nodes and the gpus of each are required:
//
//	name: lab                # default: the name of the file
//	nodes:
//	  - count: 15            # nodes alike; default 1
//	    gpus: 4              # per node
//	    type: v100           # default gpu
//	    name: n              # n0 ... n14, or plain n without a count; default: node0, node1, ... through the file
//	    racks: 3             # equal blocks of nodes in racks of their own: rack0, rack1, ... through the file
//	    cpus: 32             # per node; default 0, not counted
//	    memory_gb: 256       # per node; default 0, not counted
//	    gpu_memory_gb: 16    # per GPU; default 0, unknown
//	    sharing: mps         # how jobs share a GPU: mps, mig or, default, time-slicing
//	    power:               # default 0
//	      idle_w: 650        # of a node with no GPU busy
//	      busy_gpu_w: 160    # added per busy GPU
//	      sleep_w: 0         # of a node asleep
//	      wake_seconds: 30   # until a node that slept is up
//	    price_per_hour: 3.9  # per node; default 0
//	  - gpus: 8
//	    type: a100
//	    name: big
//	    rack: r1             # all of them in one rack; default unknown
//	    power: {idle_w: 900, busy_gpu_w: 350}
//	  - gpus: 8
//	    type: v100
//	    power:               # by the mean use u of the GPUs, in place of idle_w and busy_gpu_w:
//	      curve: {idle: 650.4, scale: 1310.9, exponent: 1.55} # idle + scale (2u - u^exponent), exponent 1 to 2
//	  - gpus: 8
//	    type: v100
//	    power: {curve: {0: 650, 0.5: 1550, 1: 1960}} # or W by use, linear between, from 0 to 1
//	pools:                   # what may be rented; nodes may be left out then
//	  - name: spot           # nodes are spot-1, spot-2, ...
//	    gpus: 4
//	    type: v100           # as above; so may be cpus, memory_gb, gpu_memory_gb, sharing, power
//	    price_per_hour: 3.9  # per node, from the request on
//	    boot_seconds: 120    # from the request until a node joins; default 0
//	    billing_seconds: 60  # a node is paid for in whole multiples of it; default 0, to the nanosecond
//	    min: 0               # nodes always rented; default 0
//	    max: 20              # nodes that may be rented
//	failures:                # default: nodes never fail
//	  node_mtbf_hours: 720   # mean time a node stays up; 0 = never fails
//	  repair_hours: 4        # time it stays down
//	  seed: 7                # default 1
//
// Reading is strict: an unknown key, a wrong type, a figure out of range, a name twice, a second document, or an
// anchor, alias, tag or merge key is an error that says where it is, what it is and what is wanted:
//
//	cluster: lab.yaml:4:5: unknown key "gpu" (did you mean "gpus"?), want one of count, gpus, type, ...
//
// Numbers are decimal; a file has at most 1 MiB, a cluster at most MaxGPUs GPUs and sched.MaxGPUTypes GPU types.
//
// NewOutages turns Failures into the moments at which nodes go down and come back.
//
// The package deliberately knows nothing of PM scores, jobs or real machines: those who need such
// things read their own files or ask the machine.
package cluster
