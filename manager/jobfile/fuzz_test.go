package jobfile

import (
	"reflect"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/docexample"
	"github.com/trainyard/trainyard/sched"
)

// maxFuzz keeps an input from costing much more than others: a count multiplies.
const maxFuzz = 1 << 12

// FuzzParse checks that no input makes Parse panic, that an error is one line with a position, and that a list that was
// read is what its documentation says.
func FuzzParse(f *testing.F) {
	f.Add(docexample.Of(f))
	f.Add("jobs: [{command: [a]}]")
	f.Add("defaults: {command: [a, 1], env: {A: b}}\njobs:\n- {name: a, count: 3, after: [job-1, c]}\n- submit: 0\n" +
		"- {name: c, gpus: {max: 2}}\n")
	f.Add("jobs: [{command: [a], name: a, after: [b]}, {command: [a], name: b, after: [a]}]")
	f.Add("jobs:\n- command: [sh, -c, \"\\0\\xff\\ud800\", |\n  a\n  ]\n  dir: ../../~\n  env: {LD_PRELOAD: x, " +
		"\"A\\0\": y}\n")
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > maxFuzz {
			return
		}
		l, err := Parse([]byte(src), "/lab/f")
		if err != nil {
			if msg := err.Error(); !strings.HasPrefix(msg, "jobfile: /lab/f:") || !strings.Contains(msg, ", want ") ||
				strings.ContainsAny(msg, "\n\x00") {
				t.Fatalf("error %q", msg)
			}
			return
		}
		if what := check(l); what != "" {
			t.Fatal(what)
		}
		again, err := Parse([]byte("# c\n"+src), "/lab/f")
		if err == nil && again.Hash != l.Hash { // a byte order mark is none in line 2
			t.Fatal("another hash with a comment")
		}
	})
}

// check returns what is wrong with l, or "".
func check(l *File) string {
	if n := len(l.Jobs); n < 1 || n > MaxJobs || len(l.Hash) != 64 {
		return "too few or too many jobs, or no hash"
	}
	names := make(map[string]bool)
	for i := range l.Jobs {
		j := &l.Jobs[i]
		name := j.Spec.Name
		switch {
		case j.Spec.Validate() != nil:
			return name + ": " + j.Spec.Validate().Error()
		case name == "" || len(name) > MaxName || names[name] || strings.Trim(name, nameChars) != "" ||
			strings.Contains(name, ".."):
			return "name " + name
		case j.Submit < 0 || sched.Time(j.Submit) != j.Spec.Submit || i > 0 && j.Submit < l.Jobs[i-1].Submit:
			return name + ": submit"
		}
		names[name] = true
		for k, a := range j.Spec.After {
			if a < 0 || int(a) >= i || k > 0 && a <= j.Spec.After[k-1] {
				return name + ": after"
			}
		}
		if i > 100 {
			continue // copies
		}
		if back, err := task.DecodeTask(j.Task.Encode()); err != nil || !reflect.DeepEqual(back, j.Task) {
			return name + ": its task does not come back"
		}
	}
	return ""
}
