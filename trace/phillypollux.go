package trace

// phillyPolluxLayout is the table of Philly jobs that the simulator of Pollux was given, and from which the workloads
// of Pollux, Sia, PAL and ElasticFlow were drawn. It is a filtered subset: most long and failed jobs are gone, by a
// rule that is not documented. Jobs have no names: they are numbered from 0 by row. The cluster is the virtual cluster.
var phillyPolluxLayout = layout{
	name: "philly-pollux",
	line: "the subset of Philly that Pollux draws from: 93% of one GPU, most long jobs gone",
	zone: "seconds from the first submission in the recorded clock, whose zone is not stated",
	source: "Philly by Pollux: 82,247 jobs chosen by an unknown rule; their mean run time is a third of that of " +
		"all jobs",
	clock: true,
	columns: []column{
		{name: "timestamp", means: clockSubmit},
		{name: "duration", means: duration},
		{name: "num_gpus", means: gpus},
		{name: "gpu_time", means: ignored},
		{name: "cluster", means: group},
	},
}
