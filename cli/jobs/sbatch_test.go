package jobs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// batchOf reads a script with flags as sbatch does, and returns its jobs and what was reported in addition.
func batchOf(t testing.TB, script string, flags ...string) (jobs []jobfile.Job, said string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.sh")
	if failed := os.WriteFile(path, []byte(script), 0o600); failed != nil {
		t.Fatal(failed)
	}
	var out bytes.Buffer
	cmd := newSbatch()
	cmd.SetErr(&out)
	if failed := cmd.ParseFlags(append(flags, path, "--epochs", "3")); failed != nil {
		t.Fatal(failed)
	}
	s, _, err := batch(cmd, cmd.Flags().Args(), &shell{none: true})
	if err != nil {
		return nil, "", err
	}
	jobs, err = jobfile.ParseJobs([]byte(s.File), filepath.Join(s.Dir, "jobs.yaml"))
	return jobs, out.String(), err
}

// Ensure that what the lines of a script for Slurm ask for is what its job is, that flags go before them, and that what
// means nothing here is reported.
func TestSbatch(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // has no srun
	jobs, said, err := batchOf(t, `#!/bin/bash -l
#SBATCH --job-name="my net"   # a comment
#SBATCH --gres=gpu:a100:2 -t 1-02:30:00
## SBATCH --gpus=8
#SBATCH --signal=B:USR1@90
#SBATCH --mem=64G -c 8
#SBATCH --requeue -p gpu

  srun python train.py
#SBATCH --gpus=7
`)
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	j := &jobs[0]
	command := strings.Join(j.Task.Command, " ")
	if j.Spec.Name != "my-net" || j.Spec.GPUs.Want != 2 || j.Spec.WallTime.Hours() != 26.5 ||
		j.Task.Grace.Seconds() != 90 || j.Task.Checkpoint.Signal != "USR1" ||
		!strings.HasPrefix(command, "/bin/bash -l /") || !strings.HasSuffix(command, "/train.sh --epochs 3") ||
		j.Task.Env["SLURM_JOB_NAME"] != "my-net" {
		t.Errorf("%+v", j)
	}
	if j.Spec.CPUs != 4 || j.Spec.MemoryGB != 32 {
		t.Errorf("%g CPUs and %g GB for each GPU, want 4 and 32", j.Spec.CPUs, j.Spec.MemoryGB)
	}
	if !strings.HasPrefix(said, "trainyard: warning: --partition is passed over\n") ||
		!strings.HasSuffix(said, "train.sh calls srun, which is not in PATH: "+
			"`trainyard slurm-links FOLDER` makes it\n") {
		t.Errorf("said %q", said)
	}
	jobs, said, err = batchOf(t, "#SBATCH --gpus=2 --array=0-1\ntrue\n", "--gpus", "4", "--array", "1,4-8:2%1", "-J",
		"7")
	if err != nil || len(jobs) != 4 ||
		said != "trainyard: warning: train.sh does not start with #! and its interpreter: /bin/sh runs it\n" {
		t.Fatalf("%+v, said %q, %v", jobs, said, err)
	}
	last := &jobs[3]
	if array := (sched.Array{Place: 3, Index: 8, Size: 4, AtOnce: 1}); last.Spec.GPUs.Want != 4 ||
		last.Spec.Ties.Array != array || last.Task.Env["SLURM_JOB_NAME"] != "job-7" ||
		last.Task.Command[0] != "/bin/sh" {
		t.Errorf("%+v", last)
	}
}

// Ensure that what cannot be done is refused, with what is wanted.
func TestSbatchRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"--dependency=after:3":             "after is not known here",
		"--dependency=afterok":             `job "", want its number`,
		"--dependency=afterok:a":           `job "a", want its number`,
		"--dependency=afterok:3_x":         `job "3_x", want its number`,
		"--dependency=afterok:3?afterok:4": "a ? is not known here, want commas",
		"--array=":                         `--array "": invalid job array specification, want numbers`,
		"-N 2":                             "--nodes 2, want 1",
		"--gpus=0":                         "0 GPUs, want a number > 0",
		"--gres=gpu:many":                  "many GPUs, want a number > 0",
		"--time=soon":                      "--time soon, want minutes, HH:MM:SS",
		"--time=0":                         "--time 0, want",
		"--signal=USR1@soon":               "want [B:]SIG@SECONDS",
		"--signal=KILL@5":                  "KILL",
		"--array=5-1":                      `--array "5-1", want numbers`,
		"--array=0-9999999":                "want numbers",
		"--array=0-3%0":                    "want numbers",
		"--mem=":                           `--mem "", want a size`,
		"--mem=4x":                         "--mem 4x, want a size",
		"--mem-per-cpu=1.5G":               "--mem-per-cpu 1.5G, want a size",
		"--mem=1 --mem-per-gpu=":           "--mem next to --mem-per-gpu, want one of them",
		"-c 0":                             "--cpus-per-task 0, want a number from 1",
		"--cpus-per-gpu=-1":                "--cpus-per-gpu -1, want a number from 1",
		"-c 2 --cpus-per-gpu=2":            "--cpus-per-task next to --cpus-per-gpu, want one of them",
		"--gpus-per-task=none":             "none GPUs, want a number > 0",
		"-b now+9000000000":                "want a time within a year",
		"-b now+9223372036854775807weeks":  "want a time as now+1hour",
		"--gres=tpu:2":                     "--gres tpu:2, want gpu, gpu:N or gpu:TYPE:N",
		"--gres=gpu:1,gpux:2":              "--gres gpux:2, want gpu",
		"--gpus=99999999":                  "train.sh: --gpus 99999999: gpus 99999999, want a whole number from 1",
		"--signal=FOO@5":                   "train.sh: --signal FOO@5: checkpoint signal \"FOO\", want one of",
		"--hetjob":                         ":1: #SBATCH --hetjob: not understood",
		"train.py":                         "not understood",
	} {
		if _, _, err := batchOf(t, "#SBATCH "+line+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	none := newSbatch()
	none.SetArgs([]string{})
	if err := none.Execute(); term.ExitCode(err) != term.ExitUsage || !strings.Contains(err.Error(), "no script") {
		t.Errorf("without a script: %v", err)
	}
}

// Ensure that times are read as Slurm reads them.
func TestSlurmTime(t *testing.T) {
	for text, want := range map[string]string{"90": "1h30m0s", "10:30": "10m30s", "01:00:00": "1h0m0s",
		"2-0": "48h0m0s", "1-01:30": "25h30m0s", "0-0:0:5": "5s", "1-1:1:1:1": "", "": "",
		"-5": "", "1:2:3:4": "", "1e3": ""} {
		if got, err := slurmTime(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

func FuzzSbatch(f *testing.F) {
	f.Add("#!/bin/bash\n#SBATCH --gpus=2 -J 'a b' # c\n#SBATCH -t1-2:3 --array=1-9%2\ntrue", "1-3:2", "2-3:4")
	f.Fuzz(func(t *testing.T, script, array, limit string) {
		run, lines := directives([]byte(script))
		if len(run) == 0 {
			t.Fatal("nothing runs it")
		}
		for _, l := range lines {
			if l.number < 1 || l.number > 1+strings.Count(script, "\n") {
				t.Fatal(l)
			}
		}
		if a, err := jobfile.ParseArray(array); err == nil && (len(a.Indices) == 0 || len(a.Indices) > sched.MaxArray) {
			t.Fatalf("%d of %q", len(a.Indices), array)
		}
		if text, err := slurmTime(limit); err == nil && (text == "" || strings.HasPrefix(text, "-")) {
			t.Fatal(fmt.Sprint(limit, text))
		}
	})
}

// Ensure that --dependency names jobs that exist, by how they must end.
func TestDependency(t *testing.T) {
	list, _, err := batchOf(t, "#SBATCH --dependency=afterok:3:4,afternotok:5,afterany:6:0_3\ntrue\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list[0].Existing); got != "[{3 ok} {4 ok} {5 fail} {6 any} {0_3 any}]" {
		t.Errorf("waits for %s", got)
	}
}
