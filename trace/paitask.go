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

// readPAITables reads the other tables that o names into r.
func readPAITables(o Options, r *row) (notes []string, _ error) {
	if o.Jobs == nil {
		notes = append(notes,
			"submission is the start of the task: the job table was not given, so that no job has waited")
	} else {
		r.pai.jobs = make(map[string]paiJob)
		enter := func(row []string) string { return r.pai.enterJob(row, &r.words) }
		if err := eachRow(o.Jobs, "job table", paiJobColumns, enter); err != nil {
			return nil, err
		}
	}
	if o.Instances == nil {
		return notes, nil
	}
	r.pai.runs = make(map[string]paiRun)
	enter := func(row []string) string { return r.pai.enterInstance(row, &r.words) }
	return append(notes, "run times are from the first start of a task's instances to the last end"),
		eachRow(o.Instances, "instance table", paiInstanceColumns, enter)
}

// enterJob takes in a row of the job table. It returns what is wrong, or "".
func (t *paiTables) enterJob(row []string, w *words) (wrong string) {
	start, ok := parseMaybe(row[4], time.Second)
	if !ok || !printable(row[2]) {
		return "want a user and a start_time that is a time in seconds or nothing"
	}
	t.jobs[w.keep(row[0])] = paiJob{w.intern(user, row[2]), start}
	return ""
}

// enterInstance takes in a row of the instance table, likewise. A task has several, in any order.
func (t *paiTables) enterInstance(row []string, w *words) (wrong string) {
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
	if run, ok := t.runs[string(task)]; ok {
		if start = min(start, run.start); end >= 0 && run.end >= 0 {
			end = max(end, run.end)
		} else {
			end = -1
		}
		t.runs[string(task)] = paiRun{start, end}
		return ""
	}
	t.runs[w.keep(string(task))] = paiRun{start, end}
	return ""
}

// eachRow reads a second table, without header line or under one that starts as columns do, and shows each of its rows
// to row, which says what is wrong with it, or "". The fields are valid until it returns.
func eachRow(r io.Reader, file string, columns []string, row func(fields []string) (wrong string)) error {
	b, err := newBlocks(r)
	if err != nil {
		return inFile(file, 1, err)
	}
	in := input{file: file, lines: lines{more: b.next}}
	var fields []string
	for {
		line, ok, err := in.next()
		if err != nil || !ok {
			return err
		}
		if fields, ok = split(line, fields[:0]); line == "" || ok && len(fields) == len(columns) &&
			fields[0] == columns[0] {
			continue
		}
		if !ok || len(fields) != len(columns) {
			return in.fail("row %q, want %d fields: %v", clip(line), len(columns), columns)
		}
		if wrong := row(fields); wrong != "" {
			return in.fail("row %q, %s", clip(line), wrong)
		}
	}
}

func finishPAITask(r *row, j *Job) (wrong string) {
	s := &r.said
	if j.Spec.Name = r.words.keep(s.asked + "/" + s.given); s.asked == "" || !printable(j.Spec.Name) {
		return fmt.Sprintf("job_name %q, task_name %q, %s", clip(s.asked), clip(s.given), wantID)
	}
	run, listed := r.pai.runs[j.Spec.Name]
	if listed {
		if s.start = run.start; run.end >= 0 {
			s.end = run.end
		}
	}
	milli := math.Round(s.copies * s.parts * 10)
	switch {
	case s.start < 0:
		r.leaveOut(neverBegan)
		return ""
	case milli == 0:
		r.leaveOut(noGPU)
		return ""
	case !(milli <= 1000*MaxGPUs) || !j.askMilli(int(milli)):
		return fmt.Sprintf("%v instances with %v%% of a GPU, want 0.001 to %d GPUs in all", s.copies, s.parts, MaxGPUs)
	}
	if r.ran(j); r.drop != "" {
		return ""
	}
	var known bool
	if j.Spec.User, j.Spec.Submit, known = r.pai.submission(s.asked, s.start); !known {
		r.odd("are not in the job table")
	}
	if r.pai.runs != nil && !listed {
		r.odd("are not in the instance table: run times are those of the task table")
	}
	return ""
}

// submission returns who submitted the job of a task that started at start, and when: at start if nothing earlier is
// recorded. It is not known only if there is a job table without it.
func (t *paiTables) submission(name string, start time.Duration) (user string, at sched.Time, known bool) {
	job, ok := t.jobs[name]
	if ok && 0 <= job.submit && job.submit <= start {
		start = job.submit
	}
	return job.user, sched.Time(start), ok || t.jobs == nil
}
