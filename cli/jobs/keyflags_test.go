package jobs

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/jobfile"
)

// otherwise is how keys are said of a command that no row of keyFlags is about, or why they are for files alone.
var otherwise = map[string]string{
	"command": "behind --", "name": "--name", "gpus": "--gpus", "preemptible": "--preemptible", "env": "--env",
	"inherit_env": "--no-env", "retries": "--retries, by retry",
	"count": "a command is one job, or an array",
}

// Ensure that each key of job files has a flag, a place in the schema and one in the guide, and that no flag is about a
// key that there is not.
func TestEachKeyHasItsFlag(t *testing.T) {
	t.Parallel()
	_, err := jobfile.ParseJobs([]byte("jobs: [{nosuchkey: 1}]"), "f")
	_, list, found := strings.Cut(err.Error(), "want one of ")
	if !found {
		t.Fatal(err)
	}
	keys := strings.Split(list, ", ")
	guide, err := os.ReadFile("../../docs/guide/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("../../docs/guide/jobs.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		flags := slices.ContainsFunc(keyFlags, func(f keyFlag) bool { return f.key == key })
		if _, other := otherwise[key]; flags == other {
			t.Errorf("%s: in keyFlags %v, in the list of others %v, want one of them", key, flags, other)
		}
		if !strings.Contains(string(schema), `"`+key+`"`) {
			t.Errorf("%s is not in the schema", key)
		}
		if !strings.Contains(string(guide), "`"+key) && !strings.Contains(string(guide), key+":") {
			t.Errorf("%s is not in the guide", key)
		}
	}
	for _, f := range keyFlags {
		if !slices.Contains(keys, f.key) {
			t.Errorf("--%s is about %s, which is no key", f.flag, f.key)
		}
	}
}

// Ensure that flags make the job that a file with their keys would, and that a mistake is said of its flag.
func TestKeyFlags(t *testing.T) {
	t.Parallel()
	submission := func(flags ...string) ([]jobfile.Job, error) {
		var f handIn
		f.shell.none = true
		cmd := &cobra.Command{Use: "submit"}
		f.define(cmd)
		if err := cmd.ParseFlags(append(flags, "--no-env", "--", "true")); err != nil {
			t.Fatal(err)
		}
		s, err := f.inline(cmd, cmd.Flags().Args())
		if err != nil {
			return nil, err
		}
		return jobfile.ParseJobs([]byte(s.File), "/lab/x")
	}
	list, err := submission("--dir", "/data", "--time", "2h,warn=90s", "--model", "12", "--priority", "-3", "--batch",
		"64-1024", "--checkpoint", "ck", "--checkpoint-signal", "USR1", "--grace", "5s", "--retries", "3@30s",
		"--group", "g", "--user", "u", "--class", "c", "--wall-time", "1h", "--delay", "1m", "--progress", "tqdm",
		"--launcher", "none", "--gpu-ids", "index", "--output-max", "1GiB", "--share", "allow", "--gpu-memory", "10.5",
		"--gpu-use", "0.5", "--epochs", "9")
	if err != nil {
		t.Fatal(err)
	}
	want, err := jobfile.ParseJobs([]byte(`jobs: [{name: "true", command: ["true"], dir: /data, model: "12",
    priority: -3, time_limit: {max: 2h, warn: 90s}, batch: {global_min: 64, global_max: 1024}, checkpoint: {dir: ck, signal: USR1},
    grace: 5s, retry: {max: 3, backoff: 30s}, group: g, user: u, class: c, wall_time: 1h, submit: 1m,
    progress: {from: tqdm}, launcher: none, gpu_ids: index, output: {max: 1GiB}, share: allow, gpu_memory_gb: 10.5,
    gpu_use: 0.5, epochs: 9}]`), "/lab/x")
	if err != nil {
		t.Fatal(err)
	}
	if got, one := list[0], want[0]; got.Task.Encode() != one.Task.Encode() || got.Spec.Priority != -3 ||
		got.Spec.Model != "12" || got.Spec.Batch != one.Spec.Batch || got.Spec.Retries != 3 ||
		got.Submit != one.Submit ||
		got.Spec.WallTime != one.Spec.WallTime || got.Spec.GPUMemGB != 10.5 || got.Spec.Epochs != 9 ||
		got.Spec.User != "u" || got.Spec.Group != "g" || got.Spec.Class != "c" || got.Spec.Share != one.Spec.Share {
		t.Errorf("got  %+v\nwant %+v", got, one)
	}
	heard, err := submission("--notify", "finished:run=./a", "--notify", "failed:run=./b", "--time", "1h",
		"--time", "2h")
	if err != nil {
		t.Fatal(err)
	}
	if n := heard[0].Task.Notify; len(n) != 2 || n[0].Wants("finished") == "" || !strings.HasSuffix(n[0].Run, "/a") ||
		n[1].Wants("failed") == "" || !strings.HasSuffix(n[1].Run, "/b") || heard[0].Task.TimeLimit != 2*time.Hour {
		t.Errorf("%+v", heard[0].Task)
	}
	all, err := submission("--gpus", "3", "--cpus", "8", "--memory", "32G", "--output", "x-%j", "--error", "y")
	if err != nil {
		t.Fatal(err)
	}
	if s, of := all[0].Spec, all[0].Task; s.CPUs*3 > 8 || s.CPUs*3 < 7.9 || s.MemoryGB*3 > 32 || s.MemoryGB*3 < 31.9 ||
		of.Limits != "enforced" || of.Output.File != "x-%j" || of.Output.Error != "y" {
		t.Errorf("%+v, %+v", s, of)
	}
	for text, want := range map[string]float32{"512M": 0.5, "2": 2, "1T": 1024, "1.5GiB": 1.5} {
		if got, bad := submission("--memory", text, "--limits", "best-effort"); bad != nil ||
			got[0].Spec.MemoryGB != want || got[0].Task.Limits != "" {
			t.Errorf("%s: %v, %v, want %v", text, got, bad, want)
		}
	}
	for flag, said := range map[string]string{
		"--memory=much": `submit: --memory: memory_gb "much", want a number`,
		"--memory=5K": `submit: --memory: memory_gb "5K", want a number from 0 to 1e9 of GiB, or with M, ` +
			`G or T`,
		"--cpus=-1":               `submit: --cpus: cpus -1, want a number`,
		"--open-mode=wrap":        `submit: --open-mode: output mode "wrap", want one of append`,
		"--time=0":                `submit: --time: time_limit "0", want a time more than 0s and at most 8760h`,
		"--time=1m,warn=2m":       `submit: --time: time_limit warn 2m0s, want at most its max of 1m0s`,
		"--time=1m,2m":            `submit: --time: time_limit "1m,2m", want a time`,
		"--priority=x":            `submit: --priority: priority "x", want a whole number`,
		"--batch=64-":             `submit: --batch: global_max "", want a whole number`,
		"--retries=x":             `submit: --retries: `,
		"--gpu-use=2":             `submit: --gpu-use: gpu_use 2, want a share from 0 to 1`,
		"--share=alow":            `submit: --share: share "alow" (did you mean "allow"?), want one of never`,
		"--checkpoint-signal=FOO": `submit: --checkpoint-signal: checkpoint signal "FOO", want one of TERM`,
	} {
		if _, err := submission(flag); err == nil || !strings.HasPrefix(err.Error(), said) {
			t.Errorf("%s: %v, want %s", flag, err, said)
		}
	}
}
