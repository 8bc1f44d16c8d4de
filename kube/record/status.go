package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/sched"
)

// Extract returns what the status of a job says to people, but for its Reason. Devices are named as the driver of the
// node does, tenants are those of Tenants.
func Extract(v *sched.View, id sched.JobID, mode v1alpha1.Mode,
	tenants map[sched.GPUID][]sched.JobID) v1alpha1.TrainingJobStatus {
	j := &v.Jobs[id]
	service := j.ServiceNow(v.Now)
	s := v1alpha1.TrainingJobStatus{Phase: Phase(j), Attempt: j.Attempts, Batch: j.Live.Batch, GPUs: width(j),
		AttainedGPUSeconds: int64(service), Attained: time.Duration(float64(service) * 1e9).Round(time.Second).String()}
	s.Restarts = max(0, j.Attempts-1)
	for _, g := range j.GPUs {
		a := allocated(v, g, mode)
		for _, other := range tenants[g] {
			if other != id {
				a.SharedWith = append(a.SharedWith, title(v, other))
			}
		}
		s.Allocation = append(s.Allocation, a)
	}
	if len(j.GPUs) > 0 {
		s.Placement = "gpu"
		if mode == v1alpha1.Count {
			s.Placement = "node"
		}
	}
	return s
}

// Tenants returns those of some jobs that hold a GPU, in their order, of the GPUs that are held to be shared; nil where
// none is.
func Tenants(v *sched.View, jobs []sched.JobID) (of map[sched.GPUID][]sched.JobID) {
	for _, id := range jobs {
		j := &v.Jobs[id]
		if !j.HoldsDevices() || j.Live.Share != sched.Shared {
			continue
		}
		if of == nil {
			of = make(map[sched.GPUID][]sched.JobID)
		}
		for _, g := range j.GPUs {
			of[g] = append(of[g], id)
		}
	}
	return of
}

// allocated names one GPU. Where the mode leaves its choice to others, only the node is known.
func allocated(v *sched.View, g sched.GPUID, mode v1alpha1.Mode) v1alpha1.AllocatedGPU {
	n := &v.Nodes[v.GPUs[g].Node]
	a := v1alpha1.AllocatedGPU{Node: n.Spec.Name}
	if mode == v1alpha1.Count {
		return a
	}
	a.Device = strconv.Itoa(int(g - n.First))
	if n.Spec.Devices != nil {
		a.UUID = n.Spec.Devices[g-n.First]
	}
	return a
}

// Phase is where a job is in its life, for people.
func Phase(j *sched.Job) v1alpha1.Phase {
	switch {
	case j.State == sched.Done && j.Outcome == sched.Finished:
		return v1alpha1.Succeeded
	case j.State == sched.Done:
		return v1alpha1.Failed
	case j.Attempt == sched.Starting:
		return v1alpha1.Starting
	case j.Attempt == sched.Running:
		return v1alpha1.Running
	case j.Attempt == sched.Stopping:
		return v1alpha1.Stopping
	}
	return v1alpha1.Pending
}

// width is how many GPUs a job holds, of how many it is to hold or may.
func width(j *sched.Job) string {
	switch held, goal := len(j.GPUs), max(len(j.Target), int(j.Want)); {
	case j.State == sched.Done:
		return ""
	case held == 0 && goal == 0:
		return "0 of " + span(j.Spec.GPUs)
	case held == goal:
		return strconv.Itoa(held)
	default:
		return fmt.Sprintf("%d of %d", held, goal)
	}
}

func span(r sched.Range) string {
	if r.Min == r.Max {
		return strconv.Itoa(int(r.Min))
	}
	return fmt.Sprintf("%d-%d", r.Min, r.Max)
}

// Suspended is the reason of a job whose user wants it to rest.
const Suspended = "suspended by its user"

// Reason is the one reason why a job is where it is, with its numbers. Its times are those of clocks: time 0 was at
// origin.
func Reason(v *sched.View, id sched.JobID, w explain.Waiting, origin time.Time) string {
	j := &v.Jobs[id]
	if j.State == sched.Done {
		return j.Outcome.String()
	}
	switch w.Code {
	case explain.NotWaiting:
		return "runs on " + Places(v, j.GPUs)
	case explain.WaitStarts:
		return "starts on " + Places(v, j.GPUs)
	case explain.WaitStops:
		return "its attempt is being stopped"
	case explain.WaitFreeing:
		return "waits until " + Titles(v, w.Jobs) + " has left its GPUs"
	case explain.WaitPaused:
		return Suspended
	case explain.WaitAfter:
		return "waits for " + Titles(v, w.Jobs)
	case explain.WaitUntil:
		return "not to start before " + at(origin, w.Until, v.Now)
	case explain.WaitRetry:
		return "it is tried again"
	case explain.WaitTooWide:
		return fmt.Sprintf("needs %s, there are never more than %d", gpus(w.Need), w.Have)
	case explain.WaitQuota:
		if w.Need > w.Limit {
			return fmt.Sprintf("needs %s, its namespace may never hold more than %d", gpus(w.Need), w.Limit)
		}
		return fmt.Sprintf("needs %s, its namespace holds %d of %d", gpus(w.Need), w.Have, w.Limit)
	case explain.WaitRented:
		return fmt.Sprintf("needs %s, %s there; more may be rented", gpus(w.Need), are(w.Have))
	case explain.WaitUnusable:
		return fmt.Sprintf("needs %s, %d may be used; others are down, drained, withheld or rest after a failed start",
			gpus(w.Need), w.Have)
	case explain.WaitNeverFits:
		return fmt.Sprintf("needs %s placed as no empty cluster could", gpus(w.Need))
	case explain.WaitBehind:
		return "behind " + Titles(v, w.Jobs) + ", which nobody may pass"
	case explain.WaitBusy:
		return fmt.Sprintf("needs %s, %s free", gpus(w.Need), are(w.Have)) + ahead(len(w.Ahead))
	case explain.WaitFragmented:
		return fmt.Sprintf("needs %s, %s free, but no more than %d on one node", gpus(w.Need), are(w.Have), w.Largest)
	case explain.WaitReserved:
		return "its GPUs are reserved for " + Titles(v, w.Jobs)
	case explain.WaitUngranted:
		return fmt.Sprintf("%s free, but others make more of what there is", are(w.Have))
	case explain.WaitUndecided:
		if w.Until <= v.Now || w.Until == sched.Never {
			return "it fits, and waits for the next decision"
		}
		return "it fits; the next decision is at " + at(origin, w.Until, v.Now)
	case explain.WaitSystem:
		return fmt.Sprintf("needs %s, %s free; the system has its own reasons", gpus(w.Need), are(w.Have))
	}
	return w.Code.String()
}

// at is what clocks show at time t of a scheduler whose time 0 was at origin, with the day where it is another than
// now's.
func at(origin time.Time, t, now sched.Time) string {
	on := func(t sched.Time) time.Time { return origin.Add(time.Duration(t)).UTC() }
	return Clock(on(t), on(now))
}

// Clock says when t is: on the clock, with the day where it is another than now's, in UTC, as whoever reads it may be
// anywhere.
func Clock(t, now time.Time) string {
	if t, now = t.UTC(), now.UTC(); t.Format(time.DateOnly) != now.Format(time.DateOnly) {
		return t.Format(time.DateTime + " UTC")
	}
	return t.Format(time.TimeOnly + " UTC")
}

func gpus(n int32) string {
	if n == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", n)
}

// are counts things of which something is said.
func are(n int32) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// ahead says how many jobs rank before one, where that is known.
func ahead(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 job ranks before it"
	default:
		return fmt.Sprintf("; %d jobs rank before it", n)
	}
}

// Titles names up to three jobs.
func Titles(v *sched.View, ids []sched.JobID) string {
	var list []string
	for i, id := range ids {
		if i == 3 {
			return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), len(ids)-3)
		}
		list = append(list, title(v, id))
	}
	return strings.Join(list, ", ")
}

func title(v *sched.View, id sched.JobID) string {
	s := v.Jobs[id].Spec
	return s.User + "/" + s.Name
}

// Places says where GPUs are, which are in order of number, on up to four nodes: "node-7/0-3, node-8/1".
func Places(v *sched.View, set []sched.GPUID) string {
	const most = 4
	var list []string
	nodes := 0
	for ; len(set) > 0; nodes++ {
		node, n := v.GPUs[set[0]].Node, 1
		for n < len(set) && v.GPUs[set[n]].Node == node {
			n++
		}
		if nodes < most {
			list = append(list, v.Nodes[node].Spec.Name+"/"+indices(set[:n], v.Nodes[node].First))
		}
		set = set[n:]
	}
	if nodes > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list, ", "), nodes-most)
	}
	return strings.Join(list, ", ")
}

// indices lists GPUs of one node by their places there, neighbours together: "0-3,5".
func indices(set []sched.GPUID, first sched.GPUID) string {
	var list []string
	for len(set) > 0 {
		n := 1
		for n < len(set) && set[n] == set[n-1]+1 {
			n++
		}
		run := strconv.Itoa(int(set[0] - first))
		if n > 1 {
			run += "-" + strconv.Itoa(int(set[n-1]-first))
		}
		list, set = append(list, run), set[n:]
	}
	return strings.Join(list, ",")
}

// Refusal says why a job is refused for good.
func Refusal(r sched.Reason) string {
	switch r.Code {
	case sched.WhyTooWide:
		return fmt.Sprintf("needs %s, there are never more than %.0f", gpus(int32(r.A)), r.B)
	case sched.WhyQuota:
		return fmt.Sprintf("would hold %s, its namespace may hold %.0f", gpus(int32(r.A)), r.B)
	case sched.WhyAtRisk:
		return "would miss its deadline even alone"
	case sched.WhyNoRoom:
		return fmt.Sprintf("needs %s, %s free, and it is not to wait", gpus(int32(r.A)), are(int32(r.B)))
	}
	return r.Code.String()
}
