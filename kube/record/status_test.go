package record_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/explain"
	"github.com/trainyard/trainyard/kube/api/v1alpha1"
	"github.com/trainyard/trainyard/kube/record"
	"github.com/trainyard/trainyard/sched"
)

// Ensure that the status of a job names its GPUs and who shares each of them, those that are stopping included.
func TestAllocation(t *testing.T) {
	shared, alone := sched.Config{Share: sched.Shared}, sched.Config{}
	job := func(name string, a sched.AttemptState, c sched.Config, gpus ...sched.GPUID) sched.Job {
		return sched.Job{Spec: &sched.JobSpec{User: "lab", Name: name, GPUs: sched.Rigid(len(gpus))},
			State: sched.Active, Attempt: a, Up: true, Live: c, GPUs: gpus}
	}
	v := &sched.View{Nodes: []sched.Node{{Spec: sched.NodeSpec{Name: "n", GPUs: 4,
		Devices: []string{"U0", "U1", "U2", "U3"}}}}, GPUs: make([]sched.GPU, 4),
		Jobs: []sched.Job{job("a", sched.Running, shared, 0, 1), job("b", sched.Stopping, shared, 1),
			job("c", sched.Starting, shared, 1, 2), job("d", sched.Running, alone, 3)}}
	tenants := record.Tenants(v, []sched.JobID{0, 1, 2, 3})
	for id, want := range []string{"[{n 0 U0 []} {n 1 U1 [lab/b lab/c]}]", "[{n 1 U1 [lab/a lab/c]}]",
		"[{n 1 U1 [lab/a lab/b]} {n 2 U2 []}]", "[{n 3 U3 []}]"} {
		s := record.Extract(v, sched.JobID(id), v1alpha1.Pinned, tenants)
		if got := fmt.Sprint(s.Allocation); got != want {
			t.Errorf("job %d: %s, want %s", id, got, want)
		}
	}
}

// Ensure that reasons tell times by the clock, with the day where it is another, and count one GPU as one.
func TestReason(t *testing.T) {
	const hour = sched.Time(time.Hour)
	origin := time.Date(2026, 11, 22, 15, 0, 30, 0, time.FixedZone("CET", 3600))
	v := &sched.View{Now: hour, Jobs: []sched.Job{{Spec: &sched.JobSpec{User: "lab", Name: "a"}, State: sched.Waiting}}}
	for want, w := range map[string]explain.Waiting{
		"it fits; the next decision is at 15:05:30 UTC": {
			Code: explain.WaitUndecided, Until: hour + 300e9},
		"it fits; the next decision is at 2026-11-23 00:00:30 UTC": {
			Code: explain.WaitUndecided, Until: 10 * hour},
		"it fits, and waits for the next decision": {
			Code: explain.WaitUndecided},
		"not to start before 16:00:30 UTC": {
			Code: explain.WaitUntil, Until: 2 * hour},
		"needs 1 GPU, 0 are free": {
			Code: explain.WaitBusy, Need: 1},
		"needs 2 GPUs, 1 is free; 2 jobs rank before it": {
			Code: explain.WaitBusy, Need: 2, Have: 1, Ahead: []sched.JobID{0, 0}},
		"needs 1 GPU, 0 may be used; others are down, drained, withheld or rest after a failed start": {
			Code: explain.WaitUnusable, Need: 1},
		"needs 2 GPUs, its namespace holds 6 of 6": {
			Code: explain.WaitQuota, Need: 2, Have: 6, Limit: 6},
		"needs 8 GPUs, its namespace may never hold more than 6": {
			Code: explain.WaitQuota, Need: 8, Limit: 6},
		"3 are free, but others make more of what there is": {
			Code: explain.WaitUngranted, Have: 3},
	} {
		if got := record.Reason(v, 0, w, origin); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
