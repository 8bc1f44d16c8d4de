package trace

import "time"

// phillyLayout is the plain table made of Microsoft's Philly trace (msr-fiddle/philly-traces, Jeon et al., ATC'19). The
// duration runs from the start of the first attempt to the end of the last, gaps included. vc is the virtual cluster,
// empty where unknown; it becomes the group.
var phillyLayout = layout{
	name: "philly",
	line: "plain table of the Philly trace, virtual cluster as group",
	zone: "seconds from 2017-08-14T23:27:00 in the recorded clock, whose zone is not stated",
	source: "Philly by RFold: GPU jobs, all end states, those without queueing delay or end dropped; run time from " +
		"the start of " +
		"the first attempt to the end of the last, gaps included; GPUs of the first attempt",
	origin: time.Date(2017, 8, 14, 23, 27, 0, 0, time.UTC),
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "submit_time", means: ignored},
		{name: "submit_s", means: submit},
		{name: "num_gpus", means: gpus},
		{name: "duration_s", means: duration},
		{name: "vc", means: group},
		{name: "vc_source", means: ignored},
	},
}
