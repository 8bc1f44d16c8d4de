package jobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/manager/jobfile"
)

// kinds are scripts of the kinds that people bring, and what Slurm's documentation says that they ask for: a job file's
// values of the whole job, and variables. none=NAME: the variable is not set.
var kinds = []struct{ name, lines, want string }{
	{"serial", "--job-name=serial --time=00:10:00 --ntasks=1 --mem=1gb --output=serial_%j.log",
		"name=serial gpus=1 time=10m0s mem=1 out=serial_%j.log SLURM_NTASKS=1 SLURM_NPROCS=1 SLURM_MEM_PER_NODE=1024"},
	{"serial, short options", "-J short -t 5 -n 1 -o %x.o%j -e %x.e%j",
		"name=short time=5m0s out=%x.o%j err=%x.e%j SLURM_NTASKS=1"},
	{"threads", "--ntasks=1 --cpus-per-task=8 --mem=16G --time=1-00:00:00",
		"cpus=8 mem=16 time=24h0m0s SLURM_CPUS_PER_TASK=8 SLURM_CPUS_ON_NODE=8 SLURM_JOB_CPUS_PER_NODE=8"},
	{"threads, memory by processor", "--cpus-per-task=4 --mem-per-cpu=2000M",
		"cpus=4 mem=7.8125 SLURM_MEM_PER_CPU=2000 none=SLURM_MEM_PER_NODE none=SLURM_NTASKS"},
	{"ranks on a node", "--nodes=1 --ntasks-per-node=16 --mem-per-cpu=1G",
		"SLURM_NTASKS_PER_NODE=16 SLURM_NTASKS=16 SLURM_TASKS_PER_NODE=16"},
	{"hybrid", "--ntasks=4 --cpus-per-task=2 --time=02:30:00",
		"cpus=8 time=2h30m0s SLURM_NTASKS=4 SLURM_CPUS_PER_TASK=2"},
	{"one GPU", "--gres=gpu:1 --partition=gpu --time=1:00:00", "gpus=1 time=1h0m0s none=SLURM_NTASKS"},
	{"GPUs of a type", "--gres=gpu:a100:4 --cpus-per-gpu=8", "gpus=4 type=a100 cpus=32 SLURM_CPUS_PER_GPU=8"},
	{"GPUs by node", "--nodes=1 --gpus-per-node=v100:2 --mem=64G", "gpus=2 type=v100 mem=64"},
	{"GPUs in all", "-G 3 --mem-per-gpu=20G", "gpus=3 type= mem=60 SLURM_MEM_PER_GPU=20480"},
	{"GPU for each task", "--ntasks=4 --gpus-per-task=1 --cpus-per-task=6", "gpus=4 cpus=24 SLURM_NTASKS=4"},
	{"torchrun in a job", "--nodes=1 --ntasks=1 --gpus=2 --cpus-per-task=16 --job-name=ddp", "name=ddp gpus=2 cpus=16"},
	{"Lightning", "--nodes=1 --gres=gpu:2 --ntasks-per-node=2 --signal=SIGUSR1@90 --mem=0 --time=0-02:00:00",
		"gpus=2 signal=USR1 grace=1m30s time=2h0m0s SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=2 none=SLURM_MEM_PER_NODE"},
	{"trap in bash", "--signal=B:TERM@120 --requeue --open-mode=append", "signal=TERM to=leader grace=2m0s mode="},
	{"submitit", "--array=0-9%3 --job-name=submitit --output=log/%A_%a_0_log.out --error=log/%A_%a_0_log.err " +
		"--signal=USR2@90 --wckey=submitit --open-mode=append --nodes=1 --time=60",
		"jobs=10 atonce=3 signal=USR2 grace=1m30s out=log/%A_%a_0_log.out err=log/%A_%a_0_log.err time=1h0m0s"},
	{"array", "--array=1-5", "jobs=5 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=5 SLURM_ARRAY_TASK_STEP=1 " +
		"out=slurm-%A_%a.out"},
	{"array with steps", "--array=0-15:4", "jobs=4 SLURM_ARRAY_TASK_MAX=12 SLURM_ARRAY_TASK_STEP=4"},
	{"array of some", "-a 1,3,5-7%2 --job-name='grid search'", "jobs=5 atonce=2 SLURM_ARRAY_TASK_MAX=7 " +
		"SLURM_JOB_NAME=grid-search"},
	{"pipeline", "--dependency=afterok:100:101 --kill-on-invalid-dep=yes", "after=100:ok,101:ok"},
	{"clean up after all", "-d afterany:7,afternotok:8", "after=7:any,8:fail"},
	{"later", "-b now+2hours --nice=50", "submit=2h0m0s priority=-50"},
	{"Jupyter", "--job-name=jupyter --cpus-per-task=2 --mem=8G --time=08:00:00 --output=jupyter-%J.log -e %%J-%t.%s",
		"name=jupyter cpus=2 mem=8 time=8h0m0s out=jupyter-%j.log err=%%J-0.batch"},
	{"accounts and mail", "--account=proj --qos=normal --mail-type=END,FAIL --mail-user=a@example.org -C gpu80",
		"gpus=1 mail=a@example.org:finished,failed none=SLURM_MEM_PER_NODE"},
	{"not to be stopped", "--no-requeue --exclusive --export=NONE", "preempt=false"},
	{"comments", "--time=30 # half an hour", "time=30m0s"},
}

// facts are what a job asks for, as kinds write it, and its variables.
func facts(jobs []jobfile.Job) map[string]string {
	j := &jobs[0]
	width := float64(j.Spec.GPUs.Want)
	have := map[string]string{"name": j.Spec.Name, "gpus": fmt.Sprint(j.Spec.GPUs.Want), "jobs": fmt.Sprint(len(jobs)),
		"cpus": fmt.Sprint(float64(j.Spec.CPUs) * width), "mem": fmt.Sprint(float64(j.Spec.MemoryGB) * width),
		"time": j.Task.TimeLimit.String(), "grace": j.Task.Grace.String(), "signal": j.Task.Checkpoint.Signal,
		"to": j.Task.Checkpoint.To, "out": j.Task.Output.File, "err": j.Task.Output.Error, "mode": j.Task.Output.Mode,
		"atonce": fmt.Sprint(j.Spec.Ties.Array.AtOnce), "priority": fmt.Sprint(j.Spec.Priority),
		"mail": mailed(j),
		"type": strings.Join(j.Task.GPUTypes, ","), "submit": j.Submit.String(), "preempt": fmt.Sprint(j.Spec.Preempt)}
	var after []string
	for _, e := range j.Existing {
		after = append(after, strings.NewReplacer("{", "", "}", "", " ", ":").Replace(fmt.Sprint(e)))
	}
	have["after"] = strings.Join(after, ",")
	for name, value := range j.Task.Env {
		have[name] = value
	}
	return have
}

// Ensure that scripts of common kinds ask for what Slurm's documentation says.
func TestSbatchKinds(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			jobs, _, err := batchOf(t, "#!/bin/bash\n#SBATCH "+kind.lines+"\n\nset -e\nhostname\n#SBATCH --gpus=9\n")
			if err != nil {
				t.Fatal(err)
			}
			have := facts(jobs)
			for _, word := range strings.Fields(kind.want) {
				name, value, _ := strings.Cut(word, "=")
				if got, set := have[value]; name == "none" && set {
					t.Errorf("%s is %s, want it not set", value, got)
				} else if name != "none" && have[name] != value {
					t.Errorf("%s is %s, want %s", name, have[name], value)
				}
			}
		})
	}
}

// mailed is to whom a job sends mail, and when.
func mailed(j *jobfile.Job) (text string) {
	for _, n := range j.Task.Notify {
		text += n.Mail + ":" + strings.Join(n.On, ",")
	}
	return text
}

// Ensure that mail goes to each address, and that what no mail can be sent to, or for, is warned of.
func TestSbatchMail(t *testing.T) {
	t.Parallel()
	jobs, said, err := batchOf(t, "#!/bin/sh\n#SBATCH --mail-type 'fail, Later'\n",
		"--mail-user=a@x.example, a@x.example,b@x.example,<c>,-d,")
	if err != nil {
		t.Fatal(err)
	}
	if got := mailed(&jobs[0]); got != "a@x.example:failedb@x.example:failed" ||
		strings.Count(said, "passed over") != 3 ||
		!strings.Contains(said, "--mail-type Later is") || !strings.Contains(said, "--mail-user '<c>' is") {
		t.Errorf("%s; %s", got, said)
	}
	if jobs, said, err = batchOf(t, "#!/bin/sh\n#SBATCH --mail-type=ALL --mail-user=a;b\n"); err != nil ||
		jobs[0].Task.Notify != nil || !strings.Contains(said, "--mail-user") {
		t.Errorf("%+v, %s, %v", jobs, said, err)
	}
}
