package task

import (
	"slices"
	"strconv"
	"strings"

	"github.com/trainyard/trainyard/sched"
)

// SlurmName, SlurmFolder and SlurmTasks are variables of a script that `sbatch` submitted: the name of its job, the
// folder that it was submitted in, and how many tasks were asked for, if they were.
const (
	SlurmName   = "SLURM_JOB_NAME"
	SlurmFolder = "SLURM_SUBMIT_DIR"
	SlurmTasks  = "SLURM_NTASKS"
)

// IsBatch reports whether a job with this environment is a script that `sbatch` submitted.
func IsBatch(env []string) bool {
	return slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, SlurmFolder+"=") })
}

// Slurm returns, as NAME=VALUE, what a script that `sbatch` submitted finds of its job, as Slurm 22.05 names it; nil
// for other jobs. The number of tasks is not named: by SLURM_NTASKS some trainers take each process for a rank that
// srun started.
func (t *Task) Slurm(v *Variables, a *sched.Array, node string) []string {
	if _, batch := t.Env[SlurmFolder]; !batch {
		return nil
	}
	id := strconv.Itoa(int(v.Job))
	env := []string{"SLURM_JOB_ID=" + id, "SLURM_JOBID=" + id, "SLURM_JOB_NODELIST=" + node, "SLURM_NODELIST=" + node,
		"SLURMD_NODENAME=" + node, "SLURM_JOB_NUM_NODES=1", "SLURM_NNODES=1", "SLURM_NODEID=0",
		"SLURM_PROCID=0", "SLURM_LOCALID=0", "SLURM_GPUS_ON_NODE=" + strconv.Itoa(v.GPUs)}
	if v.Attempt > 1 {
		env = append(env, "SLURM_RESTART_COUNT="+strconv.Itoa(int(v.Attempt)-1))
	}
	if a.Size > 0 {
		env = append(env, "SLURM_ARRAY_JOB_ID="+strconv.Itoa(int(a.First(v.Job))),
			"SLURM_ARRAY_TASK_ID="+strconv.Itoa(int(a.Index)), "SLURM_ARRAY_TASK_COUNT="+strconv.Itoa(int(a.Size)))
	}
	return env
}
