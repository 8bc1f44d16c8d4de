package trace

import "time"

// venusLayout is the plain table made of the Venus cluster of SenseTime's Helios trace (S-Lab HeliosData, Hu et al.,
// SC'21). Durations are clamped at 48 hours; clamped_48h is 1 where that happened, which becomes a warning.
var venusLayout = layout{
	name: "venus",
	line: "plain table of the Helios Venus trace, durations clamped at 48 h",
	zone: "seconds from 2020-03-18T04:01:39, local time of China (UTC+8)",
	source: "Helios Venus: GPU jobs, all end states; no user, virtual cluster or state; jobs before April are " +
		"survivors only",
	origin: time.Date(2020, 3, 18, 4, 1, 39, 0, time.UTC),
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "log_row", means: ignored},
		{name: "submit_time", means: ignored},
		{name: "submit_s", means: submit},
		{name: "num_gpus", means: gpus},
		{name: "duration_s", means: duration},
		{name: "clamped_48h", means: clamped},
	},
}
