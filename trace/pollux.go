package trace

import "github.com/trainyard/trainyard/sched"

// polluxLayout is the workload of Pollux (OSDI'21) and of what followed it: Sia (SOSP'23), BOA. It has no durations:
// how long a job takes follows from the profile of its application, so that Trace.Profiled is set and all durations
// are 0.
//
// num_replicas and batch_size are the fixed choice for systems that adapt neither: GPUs.Want, and Batch.Min =
// Batch.Max. A system that resizes may give any job from 1 GPU to MaxPolluxGPUs, or as many as it asks for if that is
// more. One that adapts batch sizes is to take the range from the profile: its runs leave JobSpec.Batch zero.
//
// Source: specification of BOA, 5.4 and 5.6; petuum/adaptdl, branch osdi21-artifact.
var polluxLayout = layout{
	name:     "pollux",
	line:     "workload of Pollux, Sia and BOA; how long jobs take follows from the profiles of their applications",
	zone:     "counted from the start of the workload; synthetic, no zone",
	profiled: true,
	columns: []column{
		{name: "name", means: jobID},
		{name: "time", means: submit},
		{name: "application", means: model},
		{name: "num_replicas", means: gpus},
		{name: "batch_size", means: batch},
	},
	finish: finishPollux,
}

// MaxPolluxGPUs is the width up to which the published profiles of applications reach: 16 nodes of 4 GPUs.
const MaxPolluxGPUs = 64

// finishPollux makes the row that made j elastic. It returns what is wrong, or "".
func finishPollux(_ *row, j *Job) (wrong string) {
	switch {
	case j.Spec.Model == "":
		return `application "", want the name of one: the duration follows from its profile`
	case j.Spec.Batch == sched.BatchRange{}:
		return `batch_size "", ` + wantBatch
	}
	want := j.Spec.GPUs.Want
	j.Spec.GPUs = sched.Range{Min: 1, Want: want, Max: max(want, MaxPolluxGPUs)}
	return ""
}
