package sched

import (
	"errors"
	"fmt"
	"time"
)

// NodeSpec describes a node as its driver reports it. GPUs of a node are alike.
type NodeSpec struct {
	Name      string
	GPUs      int       // > 0
	Type      TypeID    // GPU type
	Rack      int32     // nodes of a rack are near each other; 0 = unknown
	Pool      PoolID    // None when owned
	CPUs      float32   // 0 = not counted
	MemoryGB  float32   // 0 = not counted
	GPUMemGB  float32   // per GPU; 0 = unknown
	Sharing   Mechanism // how jobs share its GPUs
	IdleW     Watts     // node power with no GPU busy
	BusyGPUW  Watts     // added per busy GPU
	SleepW    Watts     // node power asleep
	Curve     PowerCurve
	Wake      time.Duration // from the request that it be up until it is, asleep before; 0 = the driver's own
	DollarsHr Dollars       // per node and hour while it is paid for; a rented node is paid for by its pool
	Devices   []string      // names of the GPUs in order, such as UUIDs; nil = unknown
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
	case s.Sharing >= Mechanisms:
		return fmt.Errorf("sharing %d, want a known mechanism", s.Sharing)
	case s.Wake < 0:
		return fmt.Errorf("wake %v, want >= 0", s.Wake)
	case s.Devices != nil && len(s.Devices) != s.GPUs:
		return fmt.Errorf("%d devices, want none or the %d of the node", len(s.Devices), s.GPUs)
	}
	return s.Curve.validate(s.IdleW)
}

// PowerCurve says how the power of a node grows with u, the mean use of its GPUs, 0..1, where more is known than
// NodeSpec.BusyGPUW. It is IdleW + Scale (2u - u^Exponent) or, if there are Points, linear between them. The zero value
// is no curve: each GPU adds BusyGPUW times its use.
type PowerCurve struct {
	Scale    Watts        // >= 0; beyond IdleW at full use
	Exponent float64      // 1..2 where Scale is not 0: beyond 2 the curve would fall
	Points   []PowerPoint // by rising use from 0 to 1, power not falling, that at 0 being IdleW
}

// PowerPoint is the power of a node at a mean use of its GPUs.
type PowerPoint struct {
	Use   float64 // 0..1
	Watts Watts   // of the whole node
}

// None reports whether c is no curve.
func (c *PowerCurve) None() bool { return c.Scale == 0 && len(c.Points) == 0 }

func (c *PowerCurve) validate(idle Watts) error {
	if len(c.Points) > 0 && (c.Scale != 0 || c.Exponent != 0) {
		return errors.New("a power curve of both scale and points, want one of them")
	}
	if !(c.Scale >= 0) || c.Scale > 0 && !(c.Exponent >= 1 && c.Exponent <= 2) || c.Scale == 0 && c.Exponent != 0 {
		return fmt.Errorf("power curve of scale %v and exponent %v, want a scale >= 0 and an exponent from 1 to 2",
			c.Scale, c.Exponent)
	}
	return validatePoints(c.Points, idle)
}

// validatePoints checks the table of a power curve, if there is one.
func validatePoints(points []PowerPoint, idle Watts) error {
	if len(points) == 0 {
		return nil
	}
	first, last := points[0], points[len(points)-1]
	if len(points) < 2 || first.Use != 0 || last.Use != 1 || first.Watts != idle {
		return fmt.Errorf("power table from use %v at %v W to %v, want one from 0 at idle power, %v W, to 1",
			first.Use, first.Watts, last.Use, idle)
	}
	for i := 1; i < len(points); i++ {
		if p, q := points[i-1], points[i]; !(q.Use > p.Use) || !(q.Watts >= p.Watts) {
			return fmt.Errorf("power table with %v W at use %v after %v W at %v, want rising use and power that does "+
				"not fall", q.Watts, q.Use, p.Watts, p.Use)
		}
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
	Target     NodeState // as requested
	Ordered    NodeState // as its driver was asked last
	Awaited    bool      // that order has not been answered yet
	Generation int32     // raised each time a machine takes the slot
	First      GPUID
	Since      Time    // when this machine joined
	Busy       int32   // GPUs held by live attempts
	Watts      Watts   // as last measured; 0 = unknown
	Price      Dollars // per hour now, at first Spec.DollarsHr; a rented node is paid for by its pool
}

// Open reports whether the node is up and is to stay so: jobs may be given its GPUs.
func (n *Node) Open() bool { return n.State == NodeUp && n.Target == NodeUp }

// Joined reports whether a machine is there and answers, or sleeps.
func (n *Node) Joined() bool {
	return n.State == NodeUp || n.State == NodeAsleep || n.State == NodeDraining
}

// PoolSpec describes a pool from which nodes of a kind are rented.
type PoolSpec struct {
	Name     string
	Type     TypeID
	GPUs     int           // of a node, > 0
	Price    Dollars       // per node and hour at first
	Boot     time.Duration // from the request until a node joins
	Billing  time.Duration // each node is paid for in whole multiples of it; 0 = to the nanosecond
	Min, Max int32         // nodes that may be wanted
	// a node is paid for from when it joins, not from the request: whether that was taken is not reported
	FromJoin bool
}

// Validate returns the first thing wrong with s.
func (s *PoolSpec) Validate() error {
	switch {
	case s.GPUs < 1 || s.Type >= MaxGPUTypes:
		return fmt.Errorf("gpus %d of type %d, want > 0 and a type below %d", s.GPUs, s.Type, MaxGPUTypes)
	case !(s.Price >= 0) || s.Boot < 0 || s.Billing < 0:
		return fmt.Errorf("price %v, boot %v, billing %v, want >= 0", s.Price, s.Boot, s.Billing)
	case s.Min < 0 || s.Max < s.Min:
		return fmt.Errorf("nodes %d..%d, want 0 <= min <= max", s.Min, s.Max)
	}
	return nil
}

// Pool is a pool and what is rented from it. What is ordered is paid for from the order on, or, with PoolSpec.FromJoin,
// what has joined; all until it is gone.
type Pool struct {
	Spec    PoolSpec
	Price   Dollars // per node and hour now
	Target  int32   // nodes, as requested
	Ordered int32   // nodes, as its driver was asked last, less those that were lost since
	Nodes   int32   // that have joined, see Node.Joined
	Spent   Dollars // up to Settled
	Settled Time
}

// SpentNow returns what the pool has cost at now, without changing p.
func (p *Pool) SpentNow(now Time) Dollars {
	if now == p.Settled { // as nearly always where several nodes come or go
		return p.Spent
	}
	return p.Spent + p.Price*Dollars(p.Paid())*Dollars(now.Sub(p.Settled).Hours())
}

// Paid returns how many nodes are paid for at present.
func (p *Pool) Paid() int32 {
	if p.Spec.FromJoin {
		return p.Nodes
	}
	return max(p.Nodes, p.Ordered)
}

// PayRest adds what is paid for a node that goes, having joined at since, up to the end of the billing period started.
// The first period started with the request, or as the node joined.
func (p *Pool) PayRest(since, now Time) {
	if b := p.Spec.Billing; b > 0 {
		paid := now.Sub(since)
		if !p.Spec.FromJoin {
			paid += p.Spec.Boot
		}
		if over := paid % b; over > 0 {
			p.Spent += p.Price * Dollars((b - over).Hours())
		}
	}
}

// Settle brings Spent up to now. It is called by the engine before what is paid for, or its price, changes.
func (p *Pool) Settle(now Time) { p.Spent, p.Settled = p.SpentNow(now), now }

// GPUState is what the driver of a GPU sees.
type GPUState uint8

// States of a GPU.
const (
	GPUInUse     GPUState = iota
	GPUForeign            // someone who is not a job of ours uses it
	GPUMissing            // its driver does not find it
	GPUStuck              // its memory is in use although no one uses it, or no one can say
	GPUWithheld           // its user wants it given to no new job
	GPUForgotten          // it is missing, and its user does not expect it back: it does not count
)

// GPU is one device. Holders counts the live attempts on it, Targets the jobs that are to hold it; of them, Alone and
// HeldAlone count those that do not share, Trials the targets on trial.
type GPU struct {
	Node        NodeID
	State       GPUState
	Quarantined bool  // as requested: it is given to no one until that is lifted
	Blamed      uint8 // failed starts in a row that suspect it, none on it having come up since
	// until then it is given to no one, since a start failed on it or next to it; 0 = it does not rest
	Rests     Time
	HeldAlone int8
	Alone     int8
	Trials    int8
	Holders   int16
	Targets   int16
}

// Usable reports whether g may be given to a job if its node is open.
func (g *GPU) Usable() bool { return g.State == GPUInUse && !g.Quarantined && g.Rests == 0 }
