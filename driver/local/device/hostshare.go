package device

import (
	"math"
	"os"
	"runtime"
)

// Machine is what jobs share apart from devices. The zero value: it is not counted.
type Machine struct {
	CPUs     float32 // processors
	MemoryGB float32 // GiB of host memory
}

// ThisMachine returns the processors and the memory of this machine, less what is reserved, in GiB.
func ThisMachine(reserved float32) Machine {
	b, _ := os.ReadFile("/proc/meminfo") // without it the memory is unknown
	m := Machine{CPUs: float32(runtime.NumCPU()), MemoryGB: shareOf(string(b), 1)}
	if m.MemoryGB > 0 {
		m.MemoryGB = max(m.MemoryGB-reserved, 0.1)
	}
	return m
}

// Steps of processors and memory: sums of multiples of them are exact in a float32, so that what jobs give back is all
// that they took.
const (
	cpuStep    = 1. / 256  // processors
	memoryStep = 1. / 1024 // GiB
)

// Part returns the part of the machine that goes with some of its devices, in whole steps.
func (m Machine) Part(devices, of int) Machine {
	down := func(x float32, step float64) float32 {
		return float32(math.Floor(float64(x)*float64(devices)/float64(of)/step) * step)
	}
	return Machine{down(m.CPUs, cpuStep), down(m.MemoryGB, memoryStep)}
}
