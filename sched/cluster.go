package sched

import "fmt"

// NodeSpec describes a node as its driver reports it. GPUs of a node are alike.
type NodeSpec struct {
	Name      string
	GPUs      int     // > 0
	Type      TypeID  // GPU type
	Rack      int32   // nodes of a rack are near each other; 0 = unknown
	Pool      PoolID  // None when owned
	CPUs      float32 // 0 = not counted
	MemoryGB  float32 // 0 = not counted
	GPUMemGB  float32 // per GPU; 0 = unknown
	IdleW     Watts   // node power with no GPU busy
	BusyGPUW  Watts   // added per busy GPU
	SleepW    Watts   // node power asleep
	DollarsHr Dollars // per node and hour while it is paid for
}

// Validate returns the first thing wrong with s.
func (s *NodeSpec) Validate() error {
	switch {
	case s.GPUs < 1:
		return fmt.Errorf("gpus %d, want > 0", s.GPUs)
	case !(s.CPUs >= 0) || !(s.MemoryGB >= 0) || !(s.GPUMemGB >= 0):
		return fmt.Errorf("cpus %v, memory %v GB, gpu memory %v GB, want >= 0", s.CPUs, s.MemoryGB, s.GPUMemGB)
	case !(s.IdleW >= 0) || !(s.BusyGPUW >= 0) || !(s.SleepW >= 0) || !(s.DollarsHr >= 0):
		return fmt.Errorf("power %v/%v/%v W, price %v, want >= 0", s.IdleW, s.BusyGPUW, s.SleepW, s.DollarsHr)
	}
	return nil
}

// NodeState is both what a node is and what a NodeTarget may ask for.
type NodeState uint8

// States of a node. A draining node keeps its attempts and takes no new ones.
const (
	NodeUp NodeState = iota
	NodeAsleep
	NodeDraining
	NodeDown
	NodeGone // released or never there; the slot may be taken again
)

var nodeStates = [...]string{"up", "asleep", "draining", "down", "gone"}

// String returns the word of a known state, which is part of the log format.
func (s NodeState) String() string { return nodeStates[s] }

// Node is a slot of the cluster. GPUs First .. First+Spec.GPUs-1 are its own.
type Node struct {
	Spec       NodeSpec
	State      NodeState
	Generation int32 // raised each time a machine takes the slot
	First      GPUID
	Busy       int32 // GPUs held by live attempts
}

// GPUState is both what a GPU may be used for and what a GPUTarget may ask for.
type GPUState uint8

// States of a GPU.
const (
	GPUInUse GPUState = iota
	GPUQuarantined
	GPUForeign // somebody who is not a job of ours uses it
	GPUMissing // its driver does not find it
)

// GPU is one device. Holders counts the live attempts on it, Targets the jobs that are to hold it.
type GPU struct {
	Node    NodeID
	State   GPUState
	Holders int16
	Targets int16
}
