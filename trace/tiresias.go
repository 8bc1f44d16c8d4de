package trace

// tiresiasLayout is the job table of the Tiresias simulator (SymbioticLab/Tiresias, README). Only id, width,
// submission, model and duration mean something to it; iterations and the interval to the next job are read over. Its
// times are seconds there, milliseconds in some descendants: Options.Unit says so.
var tiresiasLayout = layout{
	name:    "tiresias",
	line:    "job table of the Tiresias simulator: seconds unless another unit is given",
	zone:    "counted from the origin of the simulation; synthetic, no zone",
	anyUnit: true,
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "num_gpu", means: gpus},
		{name: "submit_time", means: submit},
		{name: "iterations", means: ignored},
		{name: "model_name", means: model},
		{name: "duration", means: duration},
		{name: "interval", means: ignored},
	},
}
