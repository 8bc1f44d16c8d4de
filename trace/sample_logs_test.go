package trace

import (
	"time"
)

// phillyText is a job log with all that such a log may hold: a retry, jobs that never ran, still run, or lost their
// times.
const phillyText = `[
    {"status": "Pass", "vc": "v1", "jobid": "app_1", "submitted_time": "2017-10-07 01:11:39", "user": "u1", "attempts": [
        {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:09", "detail": [
            {"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
        {"start_time": "2017-10-07 01:20:00", "end_time": "2017-10-07 02:12:09", "detail": [{"ip": "m3", "gpus": ["gpu0"]}]}]},
    {"status": "Killed", "vc": "v2", "jobid": "app_2", "submitted_time": "2017-10-07 00:11:39", "user": null, "attempts": [
        {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 01:00:01", "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}]},
    {"status": "Failed", "vc": "v2", "jobid": "app_3", "submitted_time": "2017-10-07 02:00:00", "user": "u2", "attempts": []},
    {"status": "Failed", "vc": "v2", "jobid": "app_4", "submitted_time": "2017-10-07 02:00:00", "user": "u2", "attempts": [
        {"start_time": "2017-10-07 02:00:00", "end_time": null, "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}]},
    {"status": "Failed", "vc": "v2", "jobid": "app_5", "submitted_time": "2017-10-07 02:00:00", "user": "u2", "attempts": [
        {"start_time": "None", "end_time": "2017-10-07 02:00:00", "detail": [{"ip": "m1", "gpus": ["gpu3"]}]}]},
    {"status": "Failed", "vc": "v2", "jobid": "app_6", "submitted_time": "2017-10-07 02:00:00", "user": "u2", "attempts": [
        {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:00", "detail": []}]}
]
`

// logSamples are logs of clusters.
var logSamples = []sample{
	{name: "philly log", format: "philly-log", origin: "2017-10-07T00:11:39", leftOut: 4,
		text: phillyText,
		jobs: []Job{
			with(job("app_2", 0, 1, 1), func(j *Job) { j.Spec.Group, j.State, j.Attempts = "v2", "Killed", 1 }),
			with(job("app_1", 3600, 3, 3600), func(j *Job) {
				j.Spec.User, j.Spec.Group, j.State, j.Attempts = "u1", "v1", "Pass", 2
			})},
		warnings: []string{"1 of 6 rows left out: no attempt is recorded", "1 of 6 rows left out: no time of end: " +
			"still running, or not logged",
			"1 of 6 rows left out: no time of start: they never ran", "1 of 6 rows left out: no GPU in the first " +
				"attempt",
			"placements show 3 nodes: 1 with 1 GPUs, 1 with 4 GPUs, 1 with 8 GPUs; go by them where a machine list " +
				"says otherwise",
			"rows are not in order of submission: sorted, 2 of 2 moved"}},
	{name: "philly of pollux", format: "philly-pollux", origin: "2017-10-09T06:13:03",
		text: "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,v1\n2017-10-09 " +
			"06:13:03,10.5,2,21.0,v2\n",
		jobs: []Job{
			with(job("1", 0, 2, 10.5), func(j *Job) { j.Spec.Group = "v2" }),
			with(job("0", 2932, 1, 66), func(j *Job) { j.Spec.Group = "v1" })},
		warnings: []string{"rows are not in order of submission: sorted, 2 of 2 moved"}},
	{name: "helios", format: "helios", origin: "2020-06-09T18:41:01", leftOut: 2,
		text: "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" +
			"1,uX,vcJ,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 18:42:11,60,10\n" +
			"2,uX,vcJ,0,4,1,FAILED,2020-06-09 18:41:01,2020-06-09 18:41:11,2020-06-09 18:42:11,60,10\n" +
			"3,uY,vcJ,8,4,1,CANCELLED,2020-06-09 18:41:05,,2020-06-09 18:42:11,,\n",
		jobs: []Job{with(job("1", 0, 1, 60), func(j *Job) {
			j.Spec.User, j.Spec.Group, j.State = "uX", "vcJ", "COMPLETED"
		})},
		warnings: []string{"1 of 3 rows left out: they ask for no GPU", "1 of 3 rows left out: no time of start: " +
			"they never ran"}},
	{name: "acme with offsets", format: "acme", origin: "2023-03-01T00:18:22",
		text: "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue," +
			"gpu_time\n" +
			"5,u1,1,8,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-02-28 " +
			"16:20:51+00:00,117,32,936.0\n",
		jobs: []Job{with(job("5", 0, 8, 117), func(j *Job) {
			j.Spec.User, j.Spec.Group, j.State = "u1", "Other", "FAILED"
		})}},
	{name: "kalos", format: "kalos",
		text: "job_id,submit_s,num_nodes,num_gpus,duration_s,kind\n0,5,8,64,104,Pretrain\n",
		jobs: []Job{with(job("0", 5, 64, 104), func(j *Job) { j.Spec.Group = "Pretrain" })}},
	{name: "tasks of pai", format: "pai-task", origin: "1970-01-01T08:00:00", leftOut: 2,
		text: "j1,worker,2.0,Terminated,1000.0,1600.5,600.0,29.296875,25.0,MISC\nj1,ps,1.0,Terminated,1000.0,1600.0," +
			"600.0,29.3,,\n" +
			"j2,tensorflow,10.0,Failed,1100.0,1200.0,600.0,29.3,100.0,V100\nj3,tensorflow,1.0,Waiting,,,600.0,29.3," +
			"100.0,V100\n",
		jobs: []Job{
			with(job("j1/worker", 1000, 1, 600.5), func(j *Job) {
				j.MilliGPU, j.State, j.GPUType = 500, "Terminated", "MISC"
			}),
			with(job("j2/tensorflow", 1100, 10, 100), func(j *Job) { j.State, j.GPUType = "Failed", "V100" })},
		warnings: []string{"1 of 4 rows left out: they ask for no GPU", "1 of 4 rows left out: no time of start: " +
			"they never ran",
			"1 of 2 jobs " + partsBooked, "submission is the start of the task: the job table was not given, so that " +
				"no job has waited"}},
	{name: "tasks and jobs of pai", format: "pai-task",
		text: "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n" +
			"j1,w,1,Terminated,100,160,,,12.5,T4\nj9,w,1,Terminated,100,160,,,100,\n",
		tables: tables{jobs: "j1,i1,ann,Terminated,40.0,170.0\nj2,i2,bob,Failed,,\n"},
		jobs: []Job{
			with(job("j1/w", 40, 1, 60), func(j *Job) {
				j.MilliGPU, j.Spec.User, j.State, j.GPUType = 125, "ann", "Terminated", "T4"
			}),
			with(job("j9/w", 100, 1, 60), func(j *Job) { j.State = "Terminated" })},
		warnings: []string{"1 of 2 jobs " + partsBooked, "1 of 2 jobs are not in the job table"}},
	{name: "all tables of pai", format: "pai-task", leftOut: 1,
		// a runs from its first instance to its last; the third never started. One of b has not ended: the task says
		// when. c started by its instance alone; d has no instance and no end; e has no instance
		text: "a,w,3,Terminated,100,160,,,100,T4\nb,w,2,Failed,200,290,,,100,T4\nc,w,1,Terminated,,400,,,100,T4\n" +
			"d,w,1,Running,300,,,,100,T4\ne,w,1,Terminated,500,540,,,100,T4\n",
		tables: tables{jobs: "a,ia,ann,Terminated,90,170\nb,ib,bob,Failed,90,290\nc,ic,cy,Terminated,390,400\n" +
			"e,ie,eve,Terminated,450,540\n",
			instances: "job_name,task_name,inst_name,worker_name,inst_id,status,start_time,end_time,machine\n" +
				"a,w,1,x,ia,Terminated,110,150,m1\nb,w,1,x,ib,Failed,210,220,m1\na,w,2,x,ia,Terminated,105,140,m2\n" +
				"a,w,3,x,ia,Waiting,,,\n" +
				"b,w,2,x,ib,Running,205,,m2\nb,w,3,x,ib,Failed,215,260,m2\nc,w,1,x,ic,Terminated,395,399,m1\n" +
				"z,w,1,x,iz,Terminated,1,2,m1\n"},
		jobs: []Job{
			with(job("a/w", 90, 3, 45), func(j *Job) { j.Spec.User, j.State, j.GPUType = "ann", "Terminated", "T4" }),
			with(job("b/w", 90, 2, 85), func(j *Job) { j.Spec.User, j.State, j.GPUType = "bob", "Failed", "T4" }),
			with(job("c/w", 390, 1, 4), func(j *Job) { j.Spec.User, j.State, j.GPUType = "cy", "Terminated", "T4" }),
			with(job("e/w", 450, 1, 40), func(j *Job) { j.Spec.User, j.State, j.GPUType = "eve", "Terminated", "T4" })},
		warnings: []string{"1 of 5 rows left out: " + neverEnded, "1 of 4 jobs are not in the instance table: run " +
			"times are those of the task table",
			"run times are from the first start of a task's instances to the last end"}},
	{name: "openb", format: "openb", leftOut: 2,
		text: "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
			"scheduled_time\n" +
			"p0,1,1,1,460,T4,LS,Running,0,125,5\np1,1,1,0,0,,LS,Running,1,125,5\np2,1,1,8,1000,A10|T4,BE,Failed,2," +
			"100,50\np3,1,1,1,1000,A10|T4,BE,Pending,3,100,\n",
		jobs: []Job{
			with(job("p0", 0, 1, 120), func(j *Job) { j.MilliGPU, j.GPUType, j.State = 460, "T4", "Running" }),
			with(job("p2", 2, 8, 50), func(j *Job) { j.State = "Failed" })},
		warnings: []string{"1 of 4 rows left out: they ask for no GPU", "1 of 4 rows left out: no time of start: " +
			"they never ran",
			"1 of 2 jobs are in phase Running and have a time of deletion all the same, which is taken for their end",
			"1 of 2 jobs " + partsBooked,
			"1 of 2 jobs accept several GPU types: taken as any"}},
	{name: "sacct", format: "sacct", origin: "2024-02-29T23:59:59", leftOut: 5,
		text: "JobID|User|Account|State|Submit|Start|End|ReqTRES|AllocTRES|Timelimit|Elapsed\n" +
			"9_1|ann|lab|CANCELLED by " +
			"1000|2024-02-29T23:59:59|2024-03-01T00:00:09|2024-03-01T00:01:09|gres/gpu=4|cpu=8,gres/gpu:a100=4|" +
			"1-02:00:03|00:01:00\n" +
			"9_1.batch||lab|CANCELLED|2024-02-29T23:59:59|2024-03-01T00:00:09|2024-03-01T00:01:09||cpu=8,gres/gpu=4||" +
			"00:01:00\n" +
			"10|bob|lab|TIMEOUT|2024-03-01T00:00:00|2024-03-01T00:00:00|2024-03-01T01:00:00|gres/gpu=2||UNLIMITED|" +
			"01:00:00\n" +
			"11|bob|lab|PENDING|2024-03-01T00:00:00|Unknown|Unknown|gres/gpu=2||UNLIMITED|00:00:00\n" +
			"12|bob|lab|RUNNING|2024-03-01T00:00:00|2024-03-01T00:00:00|Unknown|gres/gpu=2|gres/gpu=2|UNLIMITED|" +
			"00:00:00\n" +
			"13|bob|lab|COMPLETED|2024-03-01T00:00:00|2024-03-01T00:00:00|2024-03-01T00:00:01|cpu=2|cpu=2|UNLIMITED|" +
			"00:00:01\n" +
			"14|bob|lab|COMPLETED|Unknown|2024-03-01T00:00:00|2024-03-01T00:00:01|gres/gpu=2|gres/gpu=2|UNLIMITED|" +
			"00:00:01\n",
		jobs: []Job{
			with(job("9_1", 0, 4, 60), func(j *Job) {
				j.Spec.User, j.Spec.Group, j.State, j.GPUType = "ann", "lab", "CANCELLED", "a100"
				j.Spec.WallTime = 26*time.Hour + 3*time.Second
			}),
			with(job("10", 1, 2, 3600), func(j *Job) { j.Spec.User, j.Spec.Group, j.State = "bob", "lab", "TIMEOUT" })},
		warnings: []string{"1 of 7 rows left out: steps of jobs", "1 of 7 rows left out: no time of start: they " +
			"never ran",
			"1 of 7 rows left out: no time of end: still running, or not logged", "1 of 7 rows left out: they ask " +
				"for no GPU",
			"1 of 7 rows left out: unknown time of submission"}},
	{name: "swf", format: "swf", origin: "2001-09-09T01:46:40", leftOut: 3,
		text: "; Version: 2.2\n; UnixStartTime: 1000000000\n;  Computer: Hand\n" +
			"  1   0  10 3600   4 -1 -1   8 7200 -1 1  3  7 -1 -1 -1 -1 -1\n; between\n" +
			"  2  60  -1 5.5   16 -1 -1  -1   -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n" +
			"  3  60  -1   -1  16 -1 -1  -1   -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n" +
			"  4  60  -1   9   -1 -1 -1  -1   -1 -1 0 -1 -1 -1 -1 -1 -1 -1\n" +
			"  4  60  -1   9   1  -1 -1  -1   -1 -1 2 -1 -1 -1 -1 -1 -1 -1\n",
		jobs: []Job{
			with(job("1", 0, 8, 3600), func(j *Job) {
				j.Spec.User, j.Spec.Group, j.Spec.WallTime, j.State = "3", "7", 2*time.Hour, "completed"
			}),
			with(job("2", 60, 16, 5.5), func(j *Job) { j.State = "cancelled" })},
		warnings: []string{"1 of 5 rows left out: the run time is not known", "1 of 5 rows left out: the number of " +
			"processors is not known",
			"1 of 5 rows left out: parts of jobs that were checkpointed"}},
}
