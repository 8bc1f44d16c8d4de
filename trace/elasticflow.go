package trace

// elasticflowLayout is the job table of ElasticFlow's simulator (pkusys/ElasticFlow, ASPLOS'23). ddl is the deadline,
// on the clock of submit_time. Iterations and the real_ columns, which hold what the others were made of, are read
// over.
var elasticflowLayout = layout{
	name: "elasticflow",
	line: "job table of ElasticFlow's simulator, with deadlines",
	zone: "seconds from the origin of the simulation; no zone",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "submit_time", means: submit},
		{name: "iteration", means: ignored},
		{name: "model_name", means: model},
		{name: "ddl", means: deadline},
		{name: "batch_size", means: batch},
		{name: "num_gpu", means: gpus},
		{name: "duration", means: duration},
		{name: "real_iteration", means: ignored, optional: true},
		{name: "real_duration", means: ignored, optional: true},
	},
}
