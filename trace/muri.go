package trace

import "time"

// muriLayout is the job table of Muri's simulator (Rivendile/Muri, SIGCOMM'22), a descendant of that of Tiresias. Its
// times are milliseconds, which nothing but the header gives away. The profile of stages behind the interval, and the
// priority, whose sense is not documented, are read over.
var muriLayout = layout{
	name: "muri",
	line: "job table of Muri's simulator: milliseconds",
	zone: "counted from the origin of the simulation; synthetic, no zone",
	unit: time.Millisecond,
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "num_gpu", means: gpus},
		{name: "submit_time", means: submit},
		{name: "iterations", means: ignored},
		{name: "model_name", means: model},
		{name: "batch_size", means: batch},
		{name: "duration", means: duration},
		{name: "interval", means: ignored},
		{name: "iteration_time", means: ignored},
		{name: "resource_time_0", means: ignored},
		{name: "resource_time_1", means: ignored},
		{name: "resource_time_2", means: ignored},
		{name: "priority", means: ignored},
	},
}
