package trace

import "github.com/trainyard/trainyard/sched"

// heliosLayout is the job log of SenseTime's Helios clusters as published (S-Lab HeliosData, Hu et al., SC'21). Jobs
// that ask for no GPU, and those that never started, are left out.
var heliosLayout = layout{
	name:   "helios",
	line:   "job log of the Helios clusters: Earth, Saturn, Uranus, Venus",
	zone:   "seconds from the first submission, local time of China (UTC+8)",
	source: "Helios; run time from start to end",
	clock:  true,
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "user", means: user},
		{name: "vc", means: group},
		{name: "gpu_num", means: width},
		{name: "cpu_num", means: ignored},
		{name: "node_num", means: ignored},
		{name: "state", means: state},
		{name: "submit_time", means: clockSubmit},
		{name: "start_time", means: clockStart},
		{name: "end_time", means: clockEnd},
		{name: "duration", means: ignored},
		{name: "queue", means: ignored},
	},
	finish: finishHelios,
}

// acmeLayout is the job log of the Acme clusters Seren and Kalos as published (InternLM/AcmeTrace, Hu et al., NSDI'24).
// The type of workload becomes the group. Jobs that ask for no GPU, and those that never started, are left out.
var acmeLayout = layout{
	name:   "acme",
	line:   "job log of the Acme clusters: Seren, Kalos; type of workload as group",
	zone:   "seconds from the first submission, on the clock of the first row's offset from UTC",
	source: "Acme; run time from start to end",
	clock:  true,
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "user", means: user},
		{name: "node_num", means: ignored},
		{name: "gpu_num", means: width},
		{name: "cpu_num", means: ignored},
		{name: "type", means: group},
		{name: "state", means: state},
		{name: "submit_time", means: clockSubmit},
		{name: "start_time", means: clockStart},
		{name: "end_time", means: clockEnd},
		{name: "duration", means: ignored},
		{name: "queue", means: ignored},
		{name: "gpu_time", means: ignored, optional: true},
		{name: "mem_per_pod_GB", means: ignored, optional: true},
		{name: "shared_mem_per_pod", means: ignored, optional: true},
		{name: "fail_time", means: ignored, optional: true},
		{name: "stop_time", means: ignored, optional: true},
	},
	finish: finishHelios,
}

// kalosLayout is a plain table made of completed jobs of Acme's Kalos; the kind of job becomes the group.
var kalosLayout = layout{
	name:   "kalos",
	line:   "plain table of completed jobs of Acme's Kalos, kind of job as group",
	zone:   "seconds from an origin that the file does not state",
	source: "Acme Kalos, completed jobs alone; run time converted from iterations of half a second",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "submit_s", means: submit},
		{name: "num_nodes", means: ignored},
		{name: "num_gpus", means: gpus},
		{name: "duration_s", means: duration},
		{name: "kind", means: group},
	},
}

// Reasons for which rows of logs are left out.
const (
	noGPU      = "they ask for no GPU"
	neverBegan = "no time of start: they never ran"
	neverEnded = "no time of end: still running, or not logged"
	endsBefore = "they end before they start"
)

func finishHelios(r *row, j *Job) (wrong string) {
	if r.said.width == 0 {
		r.leaveOut(noGPU)
		return ""
	}
	j.Spec.GPUs = sched.Rigid(r.said.width)
	r.ran(j)
	return ""
}
