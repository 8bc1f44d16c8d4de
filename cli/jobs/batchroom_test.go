package jobs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// Ensure that processors and memory that are asked for in Slurm's ways are those of the whole job, shared among its
// GPUs, and that its variables say what was asked for; a command line goes before lines with another way.
func TestSbatchRoom(t *testing.T) {
	for _, tt := range []struct {
		line, flag   string
		gpus         int32
		cpus, memory float32 // of a GPU
		env          string
	}{
		{"--mem=3000 -n 4", "--gpus=2", 2, 0, 1.46484375, "SLURM_MEM_PER_NODE=3000"},
		{"--mem=0 -c 6", "--gpus=4", 4, 1.5, 0, "SLURM_CPUS_PER_TASK=6 SLURM_CPUS_ON_NODE=6"},
		{"--mem-per-cpu=2G -c 4 -n 2", "--gpus=2", 2, 4, 8,
			"SLURM_CPUS_PER_TASK=4 SLURM_MEM_PER_CPU=2048 SLURM_JOB_CPUS_PER_NODE=8"},
		{"--mem-per-gpu=16G --cpus-per-gpu=8", "--gpus=3", 3, 8, 16, "SLURM_CPUS_PER_GPU=8 SLURM_MEM_PER_GPU=16384"},
		{"--mem=64G --cpus-per-gpu=8", "--mem-per-gpu=1G", 1, 8, 1, "SLURM_CPUS_PER_GPU=8 SLURM_MEM_PER_GPU=1024"},
		{"--cpus-per-gpu=8", "-c2", 1, 2, 0, "SLURM_CPUS_PER_TASK=2"},
		{"--gpus-per-task=2", "-n3", 6, 0, 0, "SLURM_NTASKS=3"},
		{"--gpus=1", "--gres=gpu:3", 3, 0, 0, ""},
		{"--gpus=1 --gres=gpu:2", "--gpus-per-node=4", 4, 0, 0, ""},
		{"--gpus-per-node=2", "-G4", 4, 0, 0, ""},
		{"--gpus=a100:1 -n 3", "--gpus-per-task=2", 6, 0, 0, "SLURM_NTASKS=3"},
		{"--gpus=8", "--gpus-per-task=2", 8, 0, 0, ""},
		{"--gpus=2 --mem=3G", "--mem-per-gpu=2G", 2, 0, 2, "SLURM_MEM_PER_GPU=2048"},
	} {
		jobs, _, err := batchOf(t, "#!/bin/sh\n#SBATCH "+tt.line+"\n", tt.flag)
		if err != nil {
			t.Errorf("%s %s: %v", tt.line, tt.flag, err)
			continue
		}
		j := &jobs[0]
		if j.Spec.GPUs.Want != tt.gpus || j.Spec.CPUs != tt.cpus || j.Spec.MemoryGB != tt.memory ||
			j.Task.Limits != "" {
			t.Errorf("%s %s: %+v, %s, want %+v", tt.line, tt.flag, j.Spec, j.Task.Limits, tt)
		}
		for _, kv := range strings.Fields(tt.env) {
			if name, value, _ := strings.Cut(kv, "="); j.Task.Env[name] != value {
				t.Errorf("%s %s: %s is %s, want %s", tt.line, tt.flag, name, j.Task.Env[name], value)
			}
		}
		for name := range j.Task.Env {
			if (strings.Contains(name, "_MEM_") || strings.Contains(name, "CPUS_PER_")) && name !=
				"SLURM_JOB_CPUS_PER_NODE" && !strings.Contains(tt.env, name) {
				t.Errorf("%s %s: %s is set too", tt.line, tt.flag, name)
			}
		}
	}
}

// typedOf submits a script from standard input as sbatch does, and returns its job.
func typedOf(t *testing.T, script string) (job jobfile.Job, err error) {
	t.Helper()
	cmd := newSbatch()
	cmd.SetIn(strings.NewReader(script))
	cmd.SetErr(new(strings.Builder))
	s, _, err := batch(cmd, nil, &shell{none: true})
	if err != nil {
		return job, err
	}
	jobs, err := jobfile.ParseJobs([]byte(s.File), filepath.Join(s.Dir, "jobs.yaml"))
	if err != nil {
		return job, err
	}
	return jobs[0], nil
}

// Ensure that a script on standard input is run as it is, by what its first line names, and refused where that takes no
// text, or where there is none, without being waited for at a terminal.
func TestSbatchTyped(t *testing.T) {
	const script = "#!/usr/bin/env -S bash -e\n#SBATCH --gpus=2 -J net\necho $0 '$1'\n"
	j, err := typedOf(t, script)
	if command := strings.Join(j.Task.Command, " "); err != nil || command != "/usr/bin/env -S bash -e -c "+script+
		" sbatch" || j.Spec.Name != "net" || j.Spec.GPUs.Want != 2 {
		t.Errorf("%+v, %v", j, err)
	}
	if j, err = typedOf(t, "true"); err != nil || j.Spec.Name != "sbatch" || j.Task.Command[0] != "/bin/sh" {
		t.Errorf("%+v, %v", j, err)
	}
	for script, want := range map[string]string{
		"":                               "no script",
		"\n":                             "no script",
		"#!/usr/bin/perl\nprint":         "want a script for a shell or Python",
		"a\x00b":                         "NUL",
		"#" + strings.Repeat("a", 1<<17): "bytes",
	} {
		if _, err := typedOf(t, script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", script, err, want)
		}
	}
	for _, flags := range [][]string{{"--wrap= "}, {"--wrap=true", "net.sh"}} {
		cmd := newSbatch()
		cmd.SetArgs(flags)
		cmd.SetIn(os.Stdin)
		if err := cmd.Execute(); term.ExitCode(err) != term.ExitUsage {
			t.Errorf("%q: %v, want a usage error", flags, err)
		}
	}
}
