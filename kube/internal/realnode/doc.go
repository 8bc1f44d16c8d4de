// Package realnode runs a real node for tests: kubelet, containerd and runc, with GPUs that are not there
// (hack/controlplane/fakegpu, a DRA plugin), which join a control plane of package controlplane and run real processes
// in real containers.
//
// A node is a mount namespace and a PID namespace of its own, with a shell as its process 1 (init.sh). When the test
// binary ends, however it does, the kernel ends every process of the node and its mounts with it, and the shell removes
// its cgroups; what is left of a node that was not shut down is one folder of logs. Nothing of the machine is changed:
// what a kubelet sets in /proc/sys and has in /var/lib, /var/log and /run are files of the node's folder.
//
// What is real: the kubelet and all it does with pods, claims, cgroups, volumes, logs, signals, grace periods and exit
// codes; CDI; runc. What is not: GPUs, of which a container gets one variable each (GPU_DEVICE_3=GPU-node-3); networks,
// for pods have that of the machine (hostNetwork) and the kubelet listens on the loopback; registries: there is one
// image, which the test makes.
//
// It needs root, Linux, runc, and the binaries of `make kube-bins`. Where they are missing a test skips and says so, or
// fails where TRAINYARD_REQUIRE_KUBE_NODE is set.
package realnode
