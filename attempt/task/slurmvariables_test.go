package task

import (
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a script of sbatch finds of its job what Slurm says, each task of an array its own number, and that no
// other job is taken for one of Slurm.
func TestSlurm(t *testing.T) {
	batch := Task{Env: map[string]string{SlurmName: "net", SlurmFolder: "/data"}}
	v := Variables{Job: 12, Attempt: 1, GPUs: 2}
	got := strings.Join(batch.Slurm(&v, new(sched.Array), "vm"), " ")
	if want := "SLURM_JOB_ID=12 SLURM_JOBID=12 SLURM_JOB_NODELIST=vm SLURM_NODELIST=vm SLURMD_NODENAME=vm " +
		"SLURM_JOB_NUM_NODES=1 SLURM_NNODES=1 SLURM_NODEID=0 " +
		"SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_GPUS_ON_NODE=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	v.Attempt = 3
	env := batch.Slurm(&v, &sched.Array{Place: 2, Index: 5, Size: 8}, "vm")
	for _, want := range []string{"SLURM_RESTART_COUNT=2", "SLURM_ARRAY_JOB_ID=10", "SLURM_ARRAY_TASK_ID=5",
		"SLURM_ARRAY_TASK_COUNT=8"} {
		if !slices.Contains(env, want) {
			t.Errorf("%q lack %s", env, want)
		}
	}
	for _, none := range []string{"SLURM_NTASKS", "SLURM_NPROCS"} {
		if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, none) }) {
			t.Errorf("%q have %s: trainers take it for srun", env, none)
		}
	}
	plain := Task{Env: map[string]string{SlurmName: "net"}}
	if env := plain.Slurm(&v, new(sched.Array), "vm"); env != nil {
		t.Errorf("%q of a job that sbatch did not submit", env)
	}
}
