package trace

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// paiTaskLayout is the task table of Alibaba's PAI (cluster-trace-gpu-v2020, Weng et al., NSDI'22) as published,
// without a header line. A task is a job of inst_num instances with plan_gpu percent of a GPU each. It is submitted
// when the job that it belongs to was, if the job table is given (Options.Jobs), otherwise when it started. It runs
// from the first start of its instances to the last end, if the instance table is given (Options.Instances) and has
// them, otherwise as its own row says. Tasks without GPU, and those whose start or end is not recorded, are left out.
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
	begin:  readPAITables,
	finish: finishPAITask,
}

// paiStatus are the words of the status of a task or a job.
var paiStatus = map[string]bool{"Terminated": true, "Failed": true, "Running": true, "Waiting": true}

// paiTables are what the other tables of PAI say; a table is nil if it was not given.
type paiTables struct {
	jobs map[string]paiJob // by job_name
	runs map[string]paiRun // by job_name/task_name
}

// paiJob is what the job table says of the tasks of a job.
type paiJob struct {
	user   string
	submit time.Duration // -1 = not known
}

// paiRun is when the instances of a task that ever started ran.
type paiRun struct {
	start, end time.Duration // end -1 = one of them has not ended
}

// Columns of the other tables, which have no header line.
var (
	paiJobColumns      = []string{"job_name", "inst_id", "user", "status", "start_time", "end_time"}
	paiInstanceColumns = []string{"job_name", "task_name", "inst_name", "worker_name", "inst_id", "status",
		"start_time", "end_time", "machine"}
)

func readPAITables(p *parser) error {
	if p.o.Jobs == nil {
		p.notes = append(p.notes, "submission is the start of the task: the job table was not given, so that no job "+
			"has waited")
	} else {
		p.pai.jobs = make(map[string]paiJob)
		if err := eachRow(p.o.Jobs, "job table", paiJobColumns, p.paiJob); err != nil {
			return err
		}
	}
	if p.o.Instances == nil {
		return nil
	}
	p.notes = append(p.notes, "run times are from the first start of a task's instances to the last end")
	p.pai.runs = make(map[string]paiRun)
	return eachRow(p.o.Instances, "instance table", paiInstanceColumns, p.paiInstance)
}

// paiJob takes in a row of the job table. It returns what is wrong, or "".
func (p *parser) paiJob(row []string) (wrong string) {
	start, ok := parseMaybe(row[4], time.Second)
	if !ok || !printable(row[2]) {
		return "want a user and a start_time that is a time in seconds or nothing"
	}
	p.pai.jobs[p.words.keep(row[0])] = paiJob{p.words.intern(user, row[2]), start}
	return ""
}

// paiInstance takes in a row of the instance table, likewise. There are several of a task, in any order.
func (p *parser) paiInstance(row []string) (wrong string) {
	start, okStart := parseMaybe(row[6], time.Second)
	end, okEnd := parseMaybe(row[7], time.Second)
	if !okStart || !okEnd {
		return "want a start_time and an end_time that are times in seconds or nothing"
	}
	if start < 0 {
		return ""
	}
	var room [128]byte
	task := append(append(append(room[:0], row[0]...), '/'), row[1]...)
	if run, ok := p.pai.runs[string(task)]; ok {
		if start = min(start, run.start); end >= 0 && run.end >= 0 {
			end = max(end, run.end)
		} else {
			end = -1
		}
		p.pai.runs[string(task)] = paiRun{start, end}
		return ""
	}
	p.pai.runs[p.words.keep(string(task))] = paiRun{start, end}
	return ""
}

// eachRow reads a second table, without header line or under one that begins as columns do, and shows each of its rows
// to row, which says what is wrong with it, or "". The fields are valid until it returns.
func eachRow(r io.Reader, file string, columns []string, row func(fields []string) (wrong string)) error {
	b, err := newBlocks(r)
	if err != nil {
		return inFile(file, 1, err)
	}
	t := newParser(file, Options{})
	t.in.more = b.next
	var fields []string
	for {
		line, ok, err := t.next()
		if err != nil || !ok {
			return err
		}
		if fields, ok = split(line, fields[:0]); line == "" || ok && len(fields) == len(columns) &&
			fields[0] == columns[0] {
			continue
		}
		if !ok || len(fields) != len(columns) {
			return t.fail("row %q, want %d fields: %v", clip(line), len(columns), columns)
		}
		if wrong := row(fields); wrong != "" {
			return t.fail("row %q, %s", clip(line), wrong)
		}
	}
}

func finishPAITask(p *parser, j *Job) (wrong string) {
	s := &p.said
	if j.Spec.Name = p.words.keep(s.asked + "/" + s.given); s.asked == "" || !printable(j.Spec.Name) {
		return fmt.Sprintf("job_name %q, task_name %q, %s", clip(s.asked), clip(s.given), wantID)
	}
	run, ran := p.pai.runs[j.Spec.Name]
	if ran {
		if s.start = run.start; run.end >= 0 {
			s.end = run.end
		}
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
	if p.ran(j); p.drop != "" {
		return ""
	}
	j.Spec.Submit = sched.Time(s.start)
	if job, ok := p.pai.jobs[s.asked]; ok {
		if j.Spec.User = job.user; 0 <= job.submit && job.submit <= s.start {
			j.Spec.Submit = sched.Time(job.submit)
		}
	} else if p.pai.jobs != nil {
		p.odd("are not in the job table")
	}
	if p.pai.runs != nil && !ran {
		p.odd("are not in the instance table: run times are those of the task table")
	}
	return ""
}
