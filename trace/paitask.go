package trace

import (
	"fmt"
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// paiTaskLayout is the task table of Alibaba's PAI (cluster-trace-gpu-v2020, Weng et al., NSDI'22) as published, without a
// header line. A task is a job of inst_num instances with plan_gpu percent of a GPU each. It is submitted when the job that it
// belongs to was, if the job table is given (Options.Jobs), otherwise when it started. Tasks without GPU, and those whose
// start or end is not recorded, are left out.
//
// Source: README of the data set: columns, and how its times are to be read.
var paiTaskLayout = layout{
	name:   "pai-task",
	line:   "task table of PAI as published: no header, percent of a GPU; instances times GPUs as width",
	zone:   "seconds from a false date; as Unix time in UTC+8 they have the true hour and day of the week",
	source: "Alibaba PAI (cluster-trace-gpu-v2020), task table; run time from start to end of the task",
	origin: time.Date(1970, 1, 1, 8, 0, 0, 0, time.UTC),
	columns: []column{
		{name: "job_name", means: asked},
		{name: "task_name", means: given},
		{name: "inst_num", means: copies},
		{name: "status", means: state},
		{name: "start_time", means: started},
		{name: "end_time", means: ended},
		{name: "plan_cpu", means: ignored},
		{name: "plan_mem", means: ignored},
		{name: "plan_gpu", means: parts},
		{name: "gpu_type", means: gpuType},
	},
	bare:   func(row []string) bool { return paiStatus[row[3]] },
	begin:  readPAIJobs,
	finish: finishPAITask,
}

// paiStatus are the words of the status of a task or a job.
var paiStatus = map[string]bool{"Terminated": true, "Failed": true, "Running": true, "Waiting": true}

// paiJob is what the job table says of the tasks of a job.
type paiJob struct {
	user   string
	submit time.Duration // -1 = not known
}

// paiJobColumns are those of the job table, which has no header line.
var paiJobColumns = []string{"job_name", "inst_id", "user", "status", "start_time", "end_time"}

// readPAIJobs reads the job table.
func readPAIJobs(p *parser) error {
	if p.o.Jobs == nil {
		p.notes = append(p.notes, "submission is the start of the task: the job table was not given, so that no job has waited")
		return nil
	}
	const file = "job table"
	text, err := readText(p.o.Jobs, file)
	if err != nil {
		return err
	}
	t := newParser(file, Options{})
	t.in = lines{blocks: text}
	p.pai = make(map[string]paiJob, t.in.rows())
	for {
		line, ok, err := t.next()
		if err != nil || !ok {
			return err
		}
		fields, ok := split(line, nil)
		if line == "" || ok && len(fields) == len(paiJobColumns) && fields[0] == paiJobColumns[0] {
			continue
		}
		if !ok || len(fields) != len(paiJobColumns) {
			return t.fail("row %q, want %d fields: %v", clip(line), len(paiJobColumns), paiJobColumns)
		}
		start, ok := parseMaybe(fields[4], time.Second)
		if !ok || !printable(fields[2]) {
			return t.fail("row %q, want a user and a start_time that is a time in seconds or nothing", clip(line))
		}
		p.pai[p.words.keep(fields[0])] = paiJob{p.words.intern(user, fields[2]), start}
	}
}

func finishPAITask(p *parser, j *Job) (wrong string) {
	s := &p.said
	if j.Spec.Name = p.words.keep(s.asked + "/" + s.given); s.asked == "" || !printable(j.Spec.Name) {
		return fmt.Sprintf("job_name %q, task_name %q, %s", clip(s.asked), clip(s.given), wantID)
	}
	milli := math.Round(s.copies * s.parts * 10)
	switch {
	case s.start < 0:
		p.leaveOut(neverBegan)
		return ""
	case milli == 0:
		p.leaveOut(noGPU)
		return ""
	case !(milli <= 1000*MaxGPUs) || !j.askMilli(int(milli)):
		return fmt.Sprintf("%v instances with %v%% of a GPU, want 0.001 to %d GPUs in all", s.copies, s.parts, MaxGPUs)
	}
	j.Spec.Submit = sched.Time(s.start)
	if job, ok := p.pai[s.asked]; ok {
		if j.Spec.User = job.user; 0 <= job.submit && job.submit <= s.start {
			j.Spec.Submit = sched.Time(job.submit)
		}
	} else if p.pai != nil {
		p.odd("are not in the job table")
	}
	p.ran(j)
	return ""
}
