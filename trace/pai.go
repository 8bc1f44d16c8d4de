package trace

// paiLayout is a plain table of arrivals and service times, in which samples of Alibaba's PAI trace (cluster-trace-gpu
// v2020, Weng et al., NSDI'22) and of Helios Venus circulate. For PAI the arrival is the start of the task and
// fractions of a GPU were rounded up.
var paiLayout = layout{
	name: "pai",
	line: "arrival, service time and GPU count, as samples of the PAI and Venus traces",
	zone: "seconds from an origin that the file does not state",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "arrival_s", means: submit},
		{name: "service_sec", means: duration},
		{name: "gpu_count", means: gpus},
	},
}
