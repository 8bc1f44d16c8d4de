package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// Schemas of a Job. It is raised when a Job is written otherwise than before. The reader takes all of them, and the
// writer can write each, for a version of Trainyard to take over that knows no later one.
const (
	JobSchema    = 3 // GPUs of a node in spans
	spanless     = 2 // each GPU by itself
	OldJobSchema = 1 // knew neither evidence nor losses, nor what jobs request about being stopped
)

// ErrNewer says that a newer version of Trainyard wrote something: this one would lose what it does not know.
var ErrNewer = errors.New("a newer version of Trainyard wrote it")

// checkSchema returns an error about what is of none of the schemas between oldest and newest.
func checkSchema(is, oldest, newest int) error {
	want := strconv.Itoa(newest)
	if oldest < newest {
		want = fmt.Sprintf("%d to %d", oldest, newest)
	}
	switch {
	case is > newest:
		return fmt.Errorf("record: schema %d, want %s: %w", is, want, ErrNewer)
	case is < oldest:
		return fmt.Errorf("record: schema %d, want %s", is, want)
	}
	return nil
}

// Job is a job as the engine knows it, under its number, with its GPUs by name: the numbers of GPUs are those of one
// leader.
type Job struct {
	ID      sched.JobID
	Leader  int64  // who wrote it
	Version uint64 // events folded when it was written
	Schema  int    `json:"-"` // that it was read in; 0: it was not read
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
	j.SetRunBefore(0)   // no job has a limit of its time here, and earlier readers do not know it
	j.SetOwnStop(false) // nor do they know that
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
func (r *Job) String() string { return r.In(JobSchema) }

// In is String in one of the schemas that Read knows. An older one lacks what it did not know.
func (r *Job) In(schema int) string {
	out := schemed{schema, *r}
	if schema > spanless {
		out.GPUs, out.Target, out.Later = spansOf(r.GPUs), spansOf(r.Target), spansOf(r.Later)
	}
	if schema < spanless {
		j := &out.Job.Job
		spec := *j.Spec
		spec.Stops = sched.Stops{}
		j.Spec, j.Evidence, j.Began = &spec, 0, 0
		j.SetLoss(sched.Loss{})
	}
	b, err := json.Marshal(out)
	if err != nil { // a number that is none, which no event may carry
		panic(fmt.Sprintf("record: job %d: %v", r.ID, err))
	}
	return string(b)
}

// Read reads what String wrote, or In. Unknown fields and other schemas are errors, of which those of a newer one are
// ErrNewer.
func Read(line string) (Job, error) {
	var head struct{ Schema int }
	if err := json.Unmarshal([]byte(line), &head); err == nil { // before what it has is found not to be known
		if bad := checkSchema(head.Schema, OldJobSchema, JobSchema); bad != nil {
			return Job{}, bad
		}
	}
	var s schemed
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&s); {
	case err != nil:
		return Job{}, fmt.Errorf("record: %w", err)
	case s.ID < 0 || s.Job.Job.Spec == nil:
		return Job{}, fmt.Errorf("record: job %d with spec %v, want a number >= 0 and a spec", s.ID, s.Job.Job.Spec)
	}
	s.Job.Schema = s.Schema
	if s.Schema > spanless {
		for _, list := range []*[]string{&s.GPUs, &s.Target, &s.Later} {
			var bad error
			if *list, bad = gpusOf(*list); bad != nil {
				return Job{}, fmt.Errorf("record: job %d: %w", s.ID, bad)
			}
		}
	}
	if err := s.Job.check(); err != nil {
		return Job{}, fmt.Errorf("record: job %d: %w", s.ID, err)
	}
	return s.Job, nil
}

// check returns what of a job no engine could have written.
func (r *Job) check() error {
	j := &r.Job
	if err := j.Spec.Validate(); err != nil {
		return err
	}
	switch {
	case j.State > sched.Done || j.Attempt > sched.Ended || j.Outcome > sched.RejectedJob ||
		j.Evidence > sched.Proven:
		return fmt.Errorf("state %d, attempt %d, outcome %d, evidence %d, want known ones", uint8(j.State),
			uint8(j.Attempt), uint8(j.Outcome), uint8(j.Evidence))
	case j.Live.Share > sched.Shared || j.Share > sched.Shared:
		return fmt.Errorf("shares by %d and %d, want known ways", uint8(j.Live.Share), uint8(j.Share))
	case min(j.Attempts, j.Preemptions, j.Migrations, j.Resizes, j.Failures, j.StartFailures, j.Epoch, j.Want) < 0:
		return fmt.Errorf("a count is negative")
	case !(j.Service >= 0) || !(j.Rate >= 0) || j.Run < 0 || j.Settled < 0:
		return fmt.Errorf("service %v, rate %v, run %v, settled %v, want >= 0", j.Service, j.Rate, j.Run, j.Settled)
	}
	return r.checkSets()
}

// checkSets returns what of the GPUs of a job, and of the jobs on which it depends, no engine could have written.
func (r *Job) checkSets() error {
	if (len(r.GPUs) > 0) != r.Job.HoldsDevices() {
		return fmt.Errorf("attempt %v holds GPUs %q", r.Job.Attempt, r.GPUs)
	}
	for _, d := range r.Job.Spec.After {
		if d < 0 || d >= r.ID {
			return fmt.Errorf("it depends on job %d, want an earlier one", d)
		}
	}
	for _, list := range [][]string{r.GPUs, r.Target, r.Later} {
		seen := make(map[string]bool, len(list))
		for _, name := range list {
			if seen[name] {
				return fmt.Errorf("GPU %s twice", name)
			}
			seen[name] = true
		}
	}
	return nil
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
