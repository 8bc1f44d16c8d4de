package trace

import "strconv"

// swfLayout is the Standard Workload Format 2.2 of the Parallel Workloads Archive: 18 numbers a line, -1 for what is
// not known, comments behind semicolons. It knows no GPUs: processors, those asked for or else those given, are taken
// for GPUs. Lines about a part of a job that was checkpointed (status 2 to 4) are left out, as are jobs whose run
// time or width is not known.
//
// Source: The Standard Workload Format, Parallel Workloads Archive, version 2.2.
var swfLayout = layout{
	name:      "swf",
	line:      "Standard Workload Format 2.2; its processors are taken for GPUs",
	zone:      "seconds from UnixStartTime if the file says it",
	separator: ' ',
	comment:   ';',
	columns: []column{
		{name: "job", means: jobID},
		{name: "submit", means: submit},
		{name: "wait", means: ignored},
		{name: "run", means: ended},
		{name: "processors", means: given},
		{name: "cpu", means: ignored},
		{name: "memory", means: ignored},
		{name: "requested_processors", means: asked},
		{name: "requested_time", means: started},
		{name: "requested_memory", means: ignored},
		{name: "status", means: state},
		{name: "user", means: user},
		{name: "group", means: group},
		{name: "executable", means: ignored},
		{name: "queue", means: ignored},
		{name: "partition", means: ignored},
		{name: "preceding", means: ignored},
		{name: "think", means: ignored},
	},
	bare:   isSWF,
	finish: finishSWF,
}

// isSWF reports whether all fields of a row are numbers.
func isSWF(row []string) bool {
	for _, s := range row {
		if _, err := strconv.ParseFloat(s, 64); err != nil {
			return false
		}
	}
	return true
}

// swfStates are the words for the status of a job, which stand for completed where the number is not one of them.
var swfStates = map[string]string{"0": "failed", "1": "completed", "5": "cancelled", "-1": ""}

func finishSWF(r *row, j *Job) (wrong string) {
	word, known := swfStates[j.State]
	switch {
	case j.State == "2" || j.State == "3" || j.State == "4":
		r.leaveOut("parts of jobs that were checkpointed")
		return ""
	case !known:
		return "status \"" + clip(j.State) + "\", want -1 to 5"
	case r.said.end < 0:
		r.leaveOut("the run time is not known")
		return ""
	}
	j.State, j.Duration = word, r.said.end
	if r.said.start > 0 {
		j.Spec.WallTime = r.said.start
	}
	for _, word := range []*string{&j.Spec.User, &j.Spec.Group} {
		if *word == "-1" {
			*word = ""
		}
	}
	width := r.said.asked
	if width == "-1" || width == "0" {
		width = r.said.given
	}
	if width == "-1" || width == "0" {
		r.leaveOut("the number of processors is not known")
		return ""
	}
	return wanted(j.ask(width), "processors \""+clip(width)+"\", "+wantParts)
}
