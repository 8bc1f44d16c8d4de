package trace

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const (
	sacctHead = "JobID|State|Submit|Start|End|AllocTRES\n"
	openbHead = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
		"scheduled_time\n"
	heliosHead = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
	gavelRow   = "A3C\tpython3\trl\t--steps\t0\t8\t1\t1\t-1\t7.5\n"
	swfRow     = "1 0 -1 10 4 -1 -1 4 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
)

// Ensure that what is wrong with a log is reported with line, column, value and what is wanted.
func TestBadLogs(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		options          Options
	}{
		{"nothing left", sacctHead + "1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:01|cpu=1\n",
			`line 2: no jobs in 1 rows (1: they ask for no GPU), want at least one`, Options{}},
		{"no resources", "JobID|State|Submit|Start|End\n",
			`line 1: header "JobID|State|Submit|Start|End", want that of a known format; nearest is sacct: missing ` +
				`AllocTRES or ReqTRES`, Options{}},
		{"unknown field of sacct", "JobID|State|Submit|Start|End|AllocTRES|Colour\n",
			`line 1: header "JobID|State|Submit|Start|End|AllocTRES|Colour", want that of a known format; nearest is ` +
				`sacct: unknown "Colour"`, Options{}},
		{"clock", sacctHead + "1|COMPLETED|01/02/2024|2024-01-01T00:00:00|2024-01-01T00:00:01|gres/gpu=1\n",
			`line 2: Submit "01/02/2024", want a time such as 2017-10-09 07:01:55, from 1970 to 2069`, Options{}},
		{"resources", sacctHead +
			"1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:01|gres/gpu=many\n",
			`line 2: TRES "gres/gpu=many", want gres/gpu= with a whole number up to 1000000`, Options{}},
		{"twice", sacctHead + strings.Repeat(
			"1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:00:01|gres/gpu=1\n", 2),
			`line 3: JobID "1", want a name of its own: line 2 has it too`, Options{}},
		{"fields of sacct", sacctHead + "1|COMPLETED\n",
			`line 2: 2 fields, want 6: JobID|State|Submit|Start|End|AllocTRES`, Options{}},
		{"ends before it starts", heliosHead + "1,u,v,1,1,1,FAILED,2020-06-09 18:41:01,2020-06-09 " +
			"18:41:11,2020-06-09 18:41:10,1,1\n",
			`line 2: no jobs in 1 rows (1: they end before they start), want at least one`, Options{}},
		{"negative GPUs of helios", heliosHead + "1,u,v,-1,1,1,FAILED,2020-06-09 18:41:01,2020-06-09 " +
			"18:41:11,2020-06-09 18:41:10,1,1\n",
			`line 2: gpu_num "-1", want a whole number from 0 to 1000000`, Options{}},
		{"too much of a GPU", openbHead + "p,1,1,1,1001,,LS,Failed,0,5,1\n",
			`line 2: gpu_milli 1001, want a whole number from 0 to 1000`, Options{}},
		{"part of a thousandth", openbHead + "p,1,1,1,0.5,,LS,Failed,0,5,1\n",
			`line 2: gpu_milli 0.5, want a whole number from 0 to 1000`, Options{}},
		{"times of openb", openbHead + "p,1,1,1,500,,LS,Failed,0,soon,1\n",
			`line 2: deletion_time "soon", want a time from 0 to 100 years, or nothing where it is unknown`, Options{}},
		{"tasks", "j,w,-2,Terminated,1,2,,,100,\n", `line 1: inst_num "-2", want a number from 0 to 1e9`, Options{}},
		{"many instances", "j,w,2000000,Terminated,1,2,,,100,\n",
			`line 1: 2e+06 instances with 100% of a GPU, want 0.001 to 1000000 GPUs in all`, Options{}},
		{"bad job table", "j,w,2,Terminated,1,2,,,100,\n",
			`line 2: row "j,i", want 6 fields: [job_name inst_id user status start_time end_time]`,
			Options{Jobs: strings.NewReader("j,i,u,Failed,1,2\nj,i\n")}},
		{"bad instance table", "j,w,2,Terminated,1,2,,,100,\n",
			`line 1: row "j,w,1,x,i,Failed,soon,2,m", want a start_time and an end_time that are times in seconds or ` +
				`nothing`,
			Options{Instances: strings.NewReader("j,w,1,x,i,Failed,soon,2,m\n")}},
		{"tables of another format", minimal + "a,0,1,1\n",
			`line 1: format trainyard with a job or instance table, want none: these belong to pai-task`,
			Options{Instances: strings.NewReader("")}},
		{"steps not said", gavelRow,
			`line 1: the file counts iterations, not time: want step times (trace convert --steps)`, Options{}},
		{"steps of 100 years", gavelRow, `line 1: 8 iterations of 438300h0m0s, want at most 100 years in all`,
			Options{Steps: EveryStep(MaxTime / 2)}},
		{"SLO", strings.Replace(gavelRow, "\t-1\t", "\t-2\t", 1),
			`line 1: SLO "-2", want -1 for none, or a number from 0 to 1e9`, Options{Roughly: true}},
		{"late deadline", strings.Replace(gavelRow, "\t-1\t", "\t1e9\t", 1),
			`line 1: SLO for a deadline later than 100 years, want it within`, Options{Steps: EveryStep(time.Hour)}},
		{"fields of gavel", gavelRow + "A3C\t1\n",
			`line 2: 2 fields, want 10: ` +
				`job_type	command	working_directory	num_steps_arg	needs_data_dir	total_steps	` +
				`scale_factor	priority_weight	SLO	arrival_time`, Options{Roughly: true}},
		{"swf of 17", swfRow + "2 0 -1 10 4 -1 -1 4 -1 -1 1 -1 -1 -1 -1 -1 -1\n",
			`line 2: 17 fields, want 18: job submit wait run processors cpu memory requested_processors ` +
				`requested_time requested_memory status user group executable queue partition preceding think`,
			Options{}},
		{"status of swf", strings.Replace(swfRow, "-1 1 -1", "-1 6 -1", 1), `line 1: status "6", want -1 to 5`,
			Options{}},
		{"processors of swf", strings.Replace(swfRow, " 4 -1 -1 4 ", " -2 -1 -1 -1 ", 1),
			`line 1: processors "-2", want a whole number from 1 to 1000000, or one with up to three decimals`,
			Options{}},
		{"only comments", "; Version: 2.2\n;\n", `line 2: empty file, want a header line and jobs`, Options{}},
		{"only notes", "# origin: 2020-01-01T00:00:00\n", `line 1: empty file, want a header line and jobs`, Options{}},
		{"notes above another format", "# source: x\njob_id,arrival_s,service_sec,gpu_count\n",
			`line 2: header "job_id,arrival_s,service_sec,gpu_count", want that of format trainyard: missing ` +
				`submit_s, num_gpus, duration_s; unknown "arrival_s"; unknown "service_sec"; unknown "gpu_count"`,
			Options{}},
		{"unit of muri", strings.TrimSuffix(
			"job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"+
				"resource_time_0,resource_time_1,resource_time_2,priority", "\n"),
			`line 1: format muri with unit 1s, want none: its times are milliseconds`, Options{Unit: time.Second}},
		{"no list", "duration\n5\n",
			`line 1: no list of jobs: a sample of job sizes alone, which the setting distribution reads`, Options{}},
		{"no list of jobs", `{"a": 1}`, `line 1: want a list of jobs in brackets`, Options{}},
		{"empty list", "[\n]\n", `line 1: no jobs, want at least one row below the header`, Options{}},
		{"cut off", "[\n{\"jobid\": \"a\",\n", `line 3: job 1: the file ends early, want the whole of it`, Options{}},
		{"only a bracket", "[\n", `line 2: the file ends early, want the whole of it`, Options{}},
		{"key", "[\n{\"jobid\": \"a\", \"colour\": 1}]", `line 2: job 1: unknown field "colour"`, Options{}},
		{"type", "[\n{\"jobid\": 5}]", `line 2: job 1: jobid is of type number, want string`, Options{}},
		{"type of a list", "[\n{\"attempts\": {}}]", `line 2: job 1: attempts is of type object, want array`,
			Options{}},
		{"type of a job", "[\n[]]", `line 2: job 1: the job is of type array, want object`, Options{}},
		{"no name", "[\n\n{\"jobid\": \"\", \"submitted_time\": \"\"}]",
			`line 3: job 1: jobid "", want a name: 1 to 4096 bytes of UTF-8 text without control characters`,
			Options{}},
		{"time in a log", "[{\"jobid\": \"a\", \"submitted_time\": \"today\"}]",
			`line 1: job 1: submitted_time "today", want a time such as 2017-10-09 07:01:55, from 1970 to 2069`,
			Options{}},
		{"behind the list", strings.TrimSpace(phillyText) + " 7",
			`line 15: job 6: text behind the list of jobs, want none`, Options{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(c.text), "f", c.options)
			if err == nil {
				t.Fatalf("read %d jobs, want an error", len(got.Jobs))
			}
			file := "f"
			for _, table := range []string{"job table", "instance table"} {
				if strings.HasPrefix(c.name, "bad "+table) {
					file = table
				}
			}
			if want := "trace: " + file + ": " + c.want; err.Error() != want {
				t.Errorf("error\n%s, want\n%s", err, want)
			}
			var malformed *ParseError
			if !errors.As(err, &malformed) || malformed.Line < 1 {
				t.Errorf("error %#v, want a *ParseError with file and line", err)
			}
		})
	}
}

func TestBadSteps(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"model,step\n", `line 1: header "model,step", want that of step times: missing step_s; unknown "step" (did ` +
			`you mean "step_s"?)`},
		{"step_s,model,step_s\n1,A3C,2\n", `line 1: column "step_s" twice, want it once`},
		{"model,step_s\nA3C,0\n", `line 2: step_s "0", want a number above 0`},
		{"model,step_s\nA3C\n", `line 2: row "A3C", want 2 fields`},
		{"batch_size,step_s\n-4,1\n", `line 2: batch_size "-4", want a number above 0`},
	} {
		if _, err := ReadSteps(strings.NewReader(c.text), "f"); err == nil || err.Error() != "trace: f: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
