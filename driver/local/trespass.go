package local

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// trespassers returns, by device, the processes of jobs on it whose job does not hold it.
func (o *owners) trespassers(s *device.Sample) map[string][]device.Trespasser {
	found := make(map[string][]device.Trespasser)
	for name, r := range s.Readings {
		for _, p := range r.Processes {
			job, ours := o.pids()[p.PID]
			if ours && !o.jobHolds(job, name) {
				found[name] = append(found[name], device.Trespasser{Job: job, PID: p.PID, Cause: o.cause(job, p.PID)})
			}
		}
	}
	return found
}

// jobHolds reports whether a job holds a device.
func (o *owners) jobHolds(job sched.JobID, name string) bool {
	for _, x := range o.orders {
		if sched.JobID(x.Job) == job && slices.Contains(x.Devices, name) {
			return true
		}
	}
	return false
}

// cause says by which mistake a process of a job is probably on a GPU that the job does not hold.
func (o *owners) cause(job sched.JobID, pid int) string {
	const name = "CUDA_VISIBLE_DEVICES"
	given := ""
	for _, x := range o.orders {
		if sched.JobID(x.Job) == job {
			given = valueIn(x.Env, name)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "its environment cannot be read"
	}
	var env []string
	for kv := range bytes.SplitSeq(text, []byte{0}) {
		env = append(env, string(kv))
	}
	switch set := slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }); {
	case !set:
		return "it was started without " + name + ": some launcher or script drops it"
	case given != "" && valueIn(env, name) != given:
		return fmt.Sprintf("its %s is %q, the job was given %q: some launcher or script changes it", name,
			valueIn(env, name), given)
	}
	return name + " was as given when it was started: the program changes it, or does not go by it"
}

// valueIn returns the value of a variable, the last one where it is there more than once; "" = it is not there.
func valueIn(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
