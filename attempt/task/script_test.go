package task

import (
	"strings"
	"testing"
)

// Ensure that the script of a command is found behind options, and that a command without one is refused.
func TestScriptOf(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{
		"python train.py -x": 1, "python3.11 -u -W error train.py": 4, "/bin/bash -l run.sh a": 2,
		"env A=b python x":          3,
		"/usr/bin/env -S perl -w x": 4, "torchrun --nproc_per_node=2 train.py": 2,
		"torchrun --standalone --nproc-per-node 2 train.py 2": 4, "bash -eo pipefail run.sh": 3, "zsh +o x run.sh": 3,
		"env -u FOO -i A=b bash x.sh": 6, "./run.sh data": 0, "uv run --script x.py": 0, "env -S uv run x": 0,
		"python": 0, "python -m pkg": 0, "sh -c x": 0, "env": 0, "python -u": 0, "bash -": 0,
		"bash -lc x": 0, "sh -ec x": 0, "bash -ce x": 0, "python -uc x": 0, "python -Xc x.py": 2, "bash -e run.sh": 2,
		"python -mc train.py": 2, "trainyard slurm srun --ntasks 2 -- python -u train.py": 8,
	} {
		at, err := ScriptOf(strings.Fields(command))
		if at != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %d, %v, want %d", command, at, err, want)
		}
	}
}

// Ensure that what a task runs is named by its script, else by its program, in the folder that it runs in.
func TestProgram(t *testing.T) {
	for want, command := range map[string][]string{
		"/d/run.sh":    {"/bin/bash", "run.sh", "secret"},
		"/s/train.py":  {"python", "-u", "/s/train.py"},
		"/d/bin/train": {"bin/train", "-x"},
		"train":        {"train"},
		"/d/a.py":      {"trainyard", "slurm", "srun", "--ntasks", "2", "--", "python", "a.py"},
		"/d/b":         {"trainyard", "slurm", "srun", "--ntasks", "2", "--", "./b"},
	} {
		job := Task{Command: command, Dir: "/d"}
		if got := job.Program(); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
	for _, command := range []string{"/bin/sh -c x", "bash -lc x", "sh -ec x", "zsh -xc x", "python -uc x",
		"env A=b bash -lc x", "nu -c x", "trainyard slurm srun -- sh -c x"} {
		job := Task{Command: strings.Fields(command), Dir: "/d"}
		if got := job.Program(); got != "" {
			t.Errorf("%s: %q, want words for a shell", command, got)
		}
	}
}
