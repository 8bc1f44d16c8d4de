package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// jobSchema is raised when a Job is written otherwise than before. The reader takes the one before it as well: 1 knew
// neither evidence nor losses.
const jobSchema = 2

// Job is a job as the engine knows it, under its number, with its GPUs by name: the numbers of GPUs are those of one
// leader.
type Job struct {
	ID      sched.JobID
	Leader  int64  // who wrote it
	Version uint64 // events folded when it was written
	Job     sched.Job
	GPUs    []string // of Job.GPUs, as node/index; Job's own sets are empty
	Target  []string
	Later   []string
}

// schemed is a Job as it is written.
type schemed struct {
	Schema int
	Job
}

// Of returns job id of v, which it copies.
func Of(v *sched.View, id sched.JobID, leader int64) Job {
	j := v.Jobs[id]
	j.Detach()
	j.SetRunBefore(0) // no job has a limit of its time here, and earlier readers do not know it
	r := Job{ID: id, Leader: leader, Version: v.Version, GPUs: names(v, j.GPUs), Target: names(v, j.Target)}
	j.GPUs, j.Target = nil, nil
	if j.Later() != nil {
		later := *j.Later()
		r.Later, later.GPUs = names(v, later.GPUs), nil
		j.SetLater(&later)
	}
	r.Job = j
	return r
}

// String returns r as one line, which Read reads.
func (r *Job) String() string {
	b, err := json.Marshal(schemed{jobSchema, *r})
	if err != nil { // a number that is none, which no event may carry
		panic(fmt.Sprintf("record: job %d: %v", r.ID, err))
	}
	return string(b)
}

// Read reads what String wrote, or wrote before. Unknown fields and other schemas are errors.
func Read(line string) (Job, error) {
	var s schemed
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	d.DisallowUnknownFields()
	switch err := d.Decode(&s); {
	case err != nil:
		return Job{}, fmt.Errorf("record: %w", err)
	case s.Schema != jobSchema && s.Schema != jobSchema-1:
		return Job{}, fmt.Errorf("record: schema %d, want %d or %d", s.Schema, jobSchema-1, jobSchema)
	case s.ID < 0 || s.Job.Job.Spec == nil:
		return Job{}, fmt.Errorf("record: job %d with spec %v, want a number >= 0 and a spec", s.ID, s.Job.Job.Spec)
	}
	if err := s.Job.Job.Spec.Validate(); err != nil {
		return Job{}, fmt.Errorf("record: job %d: %w", s.ID, err)
	}
	return s.Job, nil
}

// GPUName names GPU g by its node and its place there.
func GPUName(v *sched.View, g sched.GPUID) string {
	n := &v.Nodes[v.GPUs[g].Node]
	return n.Spec.Name + "/" + strconv.Itoa(int(g-n.First))
}

func names(v *sched.View, set []sched.GPUID) []string {
	var list []string
	for _, g := range set {
		list = append(list, GPUName(v, g))
	}
	return list
}

// numbers finds GPUs by name among the joined nodes of a View.
type numbers struct {
	v     *sched.View
	nodes map[string]sched.NodeID
}

func numbersOf(v *sched.View) numbers {
	n := numbers{v, make(map[string]sched.NodeID, len(v.Nodes))}
	for i := range v.Nodes {
		if v.Nodes[i].State != sched.NodeGone {
			n.nodes[v.Nodes[i].Spec.Name] = sched.NodeID(i)
		}
	}
	return n
}

// set returns the numbers of GPUs, sorted. ok is false if one is not there.
func (n numbers) set(list []string) (set []sched.GPUID, ok bool) {
	for _, name := range list {
		node, index, _ := strings.Cut(name, "/")
		id, known := n.nodes[node]
		i, err := strconv.Atoi(index)
		if !known || err != nil || i < 0 || i >= n.v.Nodes[id].Spec.GPUs {
			return nil, false
		}
		set = append(set, n.v.Nodes[id].First+sched.GPUID(i))
	}
	slices.Sort(set)
	return set, true
}
