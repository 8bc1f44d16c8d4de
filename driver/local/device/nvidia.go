package device

import (
	"os"
	"strings"
)

// nvidia is what all ways to NVIDIA's GPUs have in common.
type nvidia struct{}

// Locks returns a folder of the machine, whatever the environment says: no two managers give out one GPU. Earlier
// releases know these locks alone.
func (nvidia) Locks() string { return "/tmp/trainyard-gpus" }

// Node returns the file by which the GPU of a device is opened.
func (nvidia) Node(d *Device) string { return nodeOf(nvidiaGPUs, deviceNodes, d.Bus) }

// Env shows a job its GPUs alone.
func (nvidia) Env(held []Device) []string {
	names := make([]string, len(held))
	for i := range held {
		names[i] = held[i].Name
	}
	return []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + strings.Join(names, ",")}
}

// initialPIDs is what /proc/self/ns/pid reads in the first pid namespace of a machine: PROC_PID_INIT_INO of the kernel.
const initialPIDs = "pid:[4026531836]"

// foreignPIDs reports whether this process lives in a pid namespace of its own, as in a container. The driver of the
// GPUs gives pids of the machine, which mean nothing here, or other processes.
func foreignPIDs() bool {
	own, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && own != initialPIDs
}
