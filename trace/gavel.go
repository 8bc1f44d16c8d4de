package trace

import "github.com/trainyard/trainyard/sched"

// gavelLayout is the trace of Gavel's simulator (stanford-futuredata/gavel, OSDI'20): ten columns between tabs, no
// header. Jobs count steps; Options.Steps says how long one takes. A job's deadline, where the SLO is not -1, is that
// many times its duration after its arrival. The weight of its priority is a share, not a rank, and is read over. Jobs
// have no names: they are numbered from 0 by row.
//
// Source: parse_trace and the use of SLO in the released code of Gavel.
var gavelLayout = layout{
	name:      "gavel",
	line:      "trace of Gavel's simulator: tabs, no header; counts steps",
	zone:      "seconds from the start of the workload; synthetic, no zone",
	separator: '\t',
	columns: []column{
		{name: "job_type", means: jobType},
		{name: "command", means: ignored},
		{name: "working_directory", means: ignored},
		{name: "num_steps_arg", means: ignored},
		{name: "needs_data_dir", means: ignored},
		{name: "total_steps", means: iterations},
		{name: "scale_factor", means: gpus},
		{name: "priority_weight", means: ignored},
		{name: "SLO", means: factor},
		{name: "arrival_time", means: submit},
	},
	bare:   func(row []string) bool { return row[4] == "0" || row[4] == "1" },
	finish: finishGavel,
}

// shockwaveLayout is the trace of Shockwave (uw-mad-dash/shockwave, NSDI'23): Gavel's with two columns more. The
// duration includes the changes of batch size that mode stands for.
var shockwaveLayout = layout{
	name:      "shockwave",
	line:      "trace of Shockwave's simulator: tabs, no header",
	zone:      "seconds from the start of the workload; synthetic, no zone",
	separator: '\t',
	columns: []column{
		{name: "job_type", means: jobType},
		{name: "command", means: ignored},
		{name: "working_directory", means: ignored},
		{name: "num_steps_arg", means: ignored},
		{name: "needs_data_dir", means: ignored},
		{name: "total_steps", means: ignored},
		{name: "scale_factor", means: gpus},
		{name: "mode", means: ignored},
		{name: "priority_weight", means: ignored},
		{name: "SLO", means: factor},
		{name: "duration", means: duration},
		{name: "arrival_time", means: submit},
	},
	bare:   func(row []string) bool { return row[4] == "0" || row[4] == "1" },
	finish: finishSLO,
}

// shockwaveTableLayout is a plain table made of a trace of Shockwave, its command columns dropped.
var shockwaveTableLayout = layout{
	name: "shockwave-table",
	line: "plain table of a trace of Shockwave",
	zone: "seconds from the start of the workload; synthetic, no zone",
	columns: []column{
		{name: "job_id", means: jobID},
		{name: "job_type", means: jobType},
		{name: "total_steps", means: ignored},
		{name: "scale_factor", means: gpus},
		{name: "mode", means: ignored},
		{name: "priority", means: ignored},
		{name: "slo", means: factor},
		{name: "duration_s", means: duration},
		{name: "arrival_s", means: submit},
	},
	finish: finishSLO,
}

// gavelPhillyLayout is a plain table of the traces that Gavel made of Philly's virtual clusters: true arrivals and
// widths, job types and steps drawn at random. Each cluster numbers its jobs from 0, so that a job's name is VC/number.
var gavelPhillyLayout = layout{
	name: "gavel-philly",
	line: "plain table of Gavel's traces of Philly's virtual clusters; counts steps",
	zone: "seconds from the first job of each virtual cluster; no zone",
	source: "Philly by Gavel: jobs of 20 minutes and more, at most 2,000 of a virtual cluster; job types and steps " +
		"synthetic",
	columns: []column{
		{name: "vc", means: group},
		{name: "job_id", means: asked},
		{name: "job_type", means: jobType},
		{name: "total_steps", means: iterations},
		{name: "arrival_s", means: submit},
		{name: "scale_factor", means: gpus},
	},
	finish: func(r *row, j *Job) (wrong string) {
		if j.Spec.Name = r.words.keep(j.Spec.Group + "/" + r.said.asked); !printable(j.Spec.Name) {
			return "job_id \"" + clip(r.said.asked) + "\", " + wantID
		}
		return finishSteps(r, j)
	},
}

func finishGavel(r *row, j *Job) (wrong string) {
	if wrong = finishSteps(r, j); wrong != "" {
		return wrong
	}
	return finishSLO(r, j)
}

// finishSLO gives j the deadline that its SLO stands for.
func finishSLO(r *row, j *Job) (wrong string) {
	if r.said.factor == 0 {
		return ""
	}
	after := r.said.factor * j.Duration.Seconds()
	if after > MaxTime.Seconds() || j.Spec.Submit+sched.Time(sched.Seconds(after)) > sched.Time(MaxTime) {
		return "SLO for a deadline later than 100 years, want it within"
	}
	j.Spec.Deadline = j.Spec.Submit + sched.Time(sched.Seconds(after))
	return ""
}
