package trace

// trainyardLayout is Trainyard's own format, which WriteCSV writes. Times are seconds, decimals allowed. An empty value
// of an optional column means unknown, none or 0. The cuts of single virtual clusters of the Philly trace have the four
// columns that must be there, and nothing else. Lines above the header that start with # say what is known of the
// whole.
var trainyardLayout = layout{
	name: "trainyard",
	line: "Trainyard's own: seconds, optional columns for what else a submitter may say",
	zone: "seconds from the origin of the file; zone not recorded",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "submit_s", means: submit},
		{name: "num_gpus", means: gpuParts},
		{name: "duration_s", means: duration},
		{name: "user", means: user, optional: true},
		{name: "group", means: group, optional: true},
		{name: "model", means: model, optional: true},
		{name: "class", means: class, optional: true},
		{name: "priority", means: priority, optional: true},
		{name: "state", means: state, optional: true},
		{name: "batch", means: batch, optional: true},
		{name: "deadline_s", means: deadline, optional: true},
		{name: "wall_time_s", means: wallTime, optional: true},
		{name: "gpu_type", means: gpuType, optional: true},
		{name: "attempts", means: attempts, optional: true},
		{name: "saves", means: saves, optional: true},
		{name: "preemptible", means: preemptible, optional: true},
	},
}
