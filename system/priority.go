package system

import (
	"cmp"

	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/pipeline"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/stage/allocate"
	"github.com/trainyard/trainyard/stage/order"
	"github.com/trainyard/trainyard/system/key"
)

// LooksAtPriority reports whether the system of h looks at the priorities of jobs: where it takes an order of jobs from
// another, whether that does; or as the key priority says. It is true of a system that is not known.
func LooksAtPriority(h *eventlog.Header) bool {
	info, err := Named(h.System)
	if err != nil {
		return true
	}
	switch keys := info.All(); {
	case keys.Find(Priority.Name) == nil:
	case h.Settings[Priority.Name] == PriorityClasses:
		return true
	case h.Settings[Priority.Name] == PriorityIgnored:
		return false
	}
	if from := info.Keys.Find(Order.Name); from != nil {
		if info, err = Named(cmp.Or(h.Settings[Order.Name], from.Default)); err != nil {
			return true
		}
	}
	return !info.NoPriority
}

// IgnoresPriority reports whether the system of h was asked to ignore the priorities of jobs.
func IgnoresPriority(h *eventlog.Header) bool { return h.Settings[Priority.Name] == PriorityIgnored }

// MostPriority returns how many steps of priority, up and down, count under the system of h; 0 = all do, or none.
func MostPriority(h *eventlog.Header) int32 {
	info, err := Named(h.System)
	if err != nil || info.Keys.Find(Priority.Name) == nil || IgnoresPriority(h) {
		return 0
	}
	return allocate.Chosen().MostPriority
}

// HigherClass counts the jobs of v that wait for GPUs as job id does and that the system of h puts before it because
// their class is higher; none where it does not go by classes, or has them be weights.
func HigherClass(h *eventlog.Header, v *sched.View, id sched.JobID) (n int) {
	info, err := Named(h.System)
	if err != nil || h.Settings[Priority.Name] != PriorityClasses {
		return 0
	}
	keys := info.All()
	if keys.Find(PriorityAge.Name) == nil || !waitsForGPUs(v.Job(id)) {
		return 0
	}
	classes := order.Classes{Age: PriorityAge.Get(key.NewSettings(h.Settings).Bind(keys, false, nil))}
	own, _ := classes.Class(v, id)
	for other := range v.Jobs {
		if waitsForGPUs(&v.Jobs[other]) {
			if class, _ := classes.Class(v, sched.JobID(other)); class > own {
				n++
			}
		}
	}
	return n
}

// waitsForGPUs reports whether a job may be given GPUs, and is to hold none.
func waitsForGPUs(j *sched.Job) bool {
	return j.State == sched.Waiting && j.Eligible() && len(j.Target) == 0
}

// classOf returns by what a system that keeps a queue of its own orders the jobs in it, before their arrival.
func classOf(s *key.Settings) sched.Classer {
	age := PriorityAge.Get(s)
	switch Priority.Get(s) {
	case PriorityIgnored:
		return order.Alike{}
	case PriorityClasses:
		return order.Classes{Age: age}
	}
	return order.Classes{}
}

// prioritize has priorities count as the key priority says: where they are classes, or ignored, the order of a system
// is by arrival where it would be by priority, too.
func prioritize(s *key.Settings, st *pipeline.Stages) {
	if !Priority.Taken(s) {
		return
	}
	how, classes := Priority.Get(s), order.Classes{}
	if PriorityAge.Taken(s) {
		classes.Age = PriorityAge.Get(s)
	}
	takes := PriorityPreempts.Taken(s) && PriorityPreempts.Get(s)
	if _, is := st.Order.(order.FIFO); is && how != PriorityOwn {
		st.Order = order.FIFO{Alike: true}
	}
	if how != PriorityClasses || !PriorityAge.Taken(s) { // in worth priority and waiting are weights
		return
	}
	st.Class, st.ClassTakes = classes, takes
	if a, is := st.Allocate.(allocate.Classified); is {
		st.Allocate = a.ByClass(classes, takes)
	}
}
