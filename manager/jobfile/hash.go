package jobfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/sched"
)

// hashVersion opens what is hashed. Another meaning of a line needs another version.
const hashVersion = "trainyard jobs 1\n"

// line is a job as it is hashed. A field that is added must be left out where it has its default.
type line struct {
	Submit   int64            `json:"submit_ns"`
	Name     string           `json:"name"`
	User     string           `json:"user,omitempty"`
	Group    string           `json:"group,omitempty"`
	Model    string           `json:"model,omitempty"`
	Class    string           `json:"class,omitempty"`
	Priority int32            `json:"priority,omitempty"`
	GPUs     sched.Range      `json:"gpus"`
	Batch    sched.BatchRange `json:"batch"`
	CPUs     float32          `json:"cpus,omitempty"`
	Memory   float32          `json:"memory_gb,omitempty"`
	GPUMem   float32          `json:"gpu_memory_gb,omitempty"`
	GPUUse   float32          `json:"gpu_use,omitempty"`
	Epochs   int32            `json:"epochs,omitempty"`
	Share    string           `json:"share"`
	Retries  int32            `json:"retries,omitempty"`
	WallTime int64            `json:"wall_time_ns,omitempty"`
	Preempt  string           `json:"preemptible,omitempty"`
	After    []sched.JobID    `json:"after,omitempty"`
	Ties     sched.Ties       `json:"ties,omitzero"`
	Inherit  bool             `json:"inherit_env,omitempty"`
	Task     string           `json:"task"` // SHA-256 of the encoded task
}

// hash returns the SHA-256 of the jobs, one line of JSON each; tasks[i] is taskHash of job i. The folders of tasks are
// part of it: the same list in another folder runs other programs.
func hash(jobs []Job, tasks []string) string {
	h := sha256.New()
	h.Write([]byte(hashVersion))
	out := json.NewEncoder(h)
	for i := range jobs {
		s := &jobs[i].Spec
		l := line{
			Submit: int64(jobs[i].Submit), Name: s.Name, User: s.User, Group: s.Group, Model: s.Model, Class: s.Class,
			Priority: s.Priority, GPUs: s.GPUs, Batch: s.Batch, CPUs: s.CPUs, Memory: s.MemoryGB, GPUMem: s.GPUMemGB,
			GPUUse: s.Util, Epochs: s.Epochs,
			Share: shares[s.Share], Retries: s.Retries, WallTime: int64(s.WallTime), After: s.After, Task: tasks[i],
			Inherit: jobs[i].Inherit, Ties: s.Ties,
		}
		if s.Preempt != sched.AfterSave {
			l.Preempt = s.Preempt.String()
		}
		if err := out.Encode(l); err != nil {
			panic("jobfile: hash: " + err.Error()) // strings and finite numbers only
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func taskHash(t task.Task) string {
	sum := sha256.Sum256([]byte(t.Encode()))
	return hex.EncodeToString(sum[:])
}
