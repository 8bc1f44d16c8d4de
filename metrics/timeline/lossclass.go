package timeline

import "github.com/trainyard/trainyard/sched"

// Class is what a GPU is at an instant: the first that holds. A GPU that attempts share is in the best class of theirs.
// An attempt that goes on where no new one may start counts as what it does.
type Class uint8

// Classes.
const (
	Useful      Class = iota // an attempt works
	Redone                   // an attempt works, and what it does is lost later
	ComingUp                 // an attempt starts, or restores what it saved
	Stopping                 // an attempt was ordered to stop and has not gone
	Down                     // its node is down, or its driver does not find it
	Drained                  // its node, or it, is to be given to no new job
	Foreign                  // someone who is not a job of ours uses it
	Quarantined              // starts on it failed
	Asleep                   // its node is asleep, or about to be
	Booting                  // its node wakes up
	Reserved                 // it is to be given to a job that has not started yet
	Unwanted                 // idle, and no job waits that could use it
	TooFew                   // idle, and no waiting job fits: too few are free
	Apart                    // idle, and no waiting job fits: enough are free, but not together
	Policy                   // idle although a waiting job fits
	Classes
)

var classWords = [Classes]string{"useful", "redone", "coming-up", "stopping", "down", "drained", "foreign",
	"quarantined", "asleep", "booting", "reserved", "unwanted", "too-few", "apart", "policy"}

// String returns the word of a class, as documents have it.
func (c Class) String() string { return classWords[c] }

// What a GPU may be in addition to a class.
const (
	held  = Classes     // by attempts; they say in which class
	gone  = Classes + 1 // its node is no longer there
	kinds = Classes + 2
)

// classOf returns the class of a GPU, held or gone. Unwanted stands for all classes of idle GPUs.
func classOf(v *sched.View, g sched.GPUID) Class {
	gpu := &v.GPUs[g]
	node := &v.Nodes[gpu.Node]
	switch {
	case node.State == sched.NodeGone:
		return gone
	case node.State == sched.NodeDown:
		return Down
	case gpu.Holders > 0:
		return held
	case node.State == sched.NodeAsleep && node.Awaited && node.Ordered == sched.NodeUp:
		return Booting
	case node.State == sched.NodeAsleep:
		return Asleep
	case gpu.State != sched.GPUInUse || !node.Open() || !gpu.Usable():
		return closedClass(gpu, node)
	case gpu.Targets > 0:
		return Reserved
	}
	return Unwanted
}

// closedClass returns why a GPU that no attempt holds is given to no new job.
func closedClass(gpu *sched.GPU, node *sched.Node) Class {
	switch {
	case gpu.State == sched.GPUMissing:
		return Down
	case node.State == sched.NodeDraining || gpu.State == sched.GPUWithheld:
		return Drained
	case gpu.State != sched.GPUInUse:
		return Foreign
	case !gpu.Usable():
		return Quarantined
	case node.Target == sched.NodeAsleep:
		return Asleep
	}
	return Drained
}
