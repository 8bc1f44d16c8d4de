// Package fakenode is a kubelet for tests, in the test's own process: many nodes with GPUs that are not there, whose
// pods run Go functions. It does what a scheduler of jobs can see of a kubelet, and nothing else.
//
//   - Nodes are Node objects with leases renewed. Their GPUs are ResourceSlices as NVIDIA's driver publishes them:
//     driver gpu.nvidia.com, one pool per node, devices gpu-0 and up, with uuid, productName and memory.
//   - A pod starts once every claim of it is allocated and reserved for it. A device that two claims hold at once is
//     noted as a violation, and so is one that the node does not have; Start fails the test for each.
//   - A process hears SIGTERM when its pod is deleted and is killed after the grace period. The pod's end is reported
//     with the exit code before the pod goes.
//   - What a process writes is served as a kubelet does, to kubectl logs among others.
//   - Faults: nodes that are silent, nodes that are lost, slices that vanish, starts that fail or are slow.
//
// Without claims, GPUs can be taken by the environment variable NVIDIA_VISIBLE_DEVICES, or by number from the device
// plugin (Options.Plugin). All containers of a pod are one process here, which is never started a second time; init
// containers are passed over.
package fakenode
