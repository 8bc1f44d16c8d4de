package task

import (
	"strings"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that each pattern stands for what it is said to, and that paths are relative to the folder of the job.
func TestExpand(t *testing.T) {
	t.Parallel()
	task := Task{Dir: "/lab"}
	spec := &sched.JobSpec{Name: "a/b", User: "ann"}
	array := &sched.JobSpec{Name: "n_9", Ties: sched.Ties{Array: sched.Array{Place: 2, Index: 9, Size: 3}}}
	for pattern, want := range map[string]string{
		"out.txt":          "/lab/out.txt",
		"/x/%j-%A-%a":      "/x/12-12-4294967294",
		"%4j%%j%u/%x":      "/lab/0012%jann/a_b",
		"../%j/../slurm%%": "/slurm%",
	} {
		if got := task.Expand(pattern, 12, spec); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
	if got := task.Expand("%x-%A_%3a.%j", 12, array); got != "/lab/n-10_009.12" {
		t.Error(got)
	}
}

// Ensure that what is no path of a file, or no pattern, is refused and named.
func TestCheckOutput(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": `"", want the path`, "~/x": "without ~", "a/": "not of a folder", "a/..": "not of a folder",
		"x\x00": "want the path", "%N": "has %N, want %j", "a%": "has %, want", "%12j": "has %12j, want",
		"%%%t": "has %t, want", "\xff": "want the path", strings.Repeat("x", MaxDir+1): "want the path",
	} {
		if err := CheckOutput(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	for _, path := range []string{"x", "/a/%x-%j.out", "%A_%4a%%", "./~", "/dev/null"} {
		if err := CheckOutput(path); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that an attempt starts with an empty file where its mode says so.
func TestTruncates(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][2]bool{"": {}, "append": {}, "truncate": {true, true}, "once": {true, false}} {
		o := OutputFile{File: "x", Mode: mode}
		if got := [2]bool{o.Truncates(1), o.Truncates(2)}; got != want {
			t.Errorf("%q: %v, want %v", mode, got, want)
		}
	}
}
