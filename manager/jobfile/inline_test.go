package jobfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// Ensure that a job of a command line is that of a file with the same words.
func TestInline(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": here, ".": here, "x": filepath.Join(here, "x"), "/data": "/data"} {
		f := parse(t, fmt.Sprintf("jobs: [{name: a, command: [python, '-u', '$X'], gpus: 2, dir: %s}]", want))
		job, err := Inline([]string{"python", "-u", "$X"}, sched.Rigid(2), "a", dir)
		if err != nil || !reflect.DeepEqual(job, f.Jobs[0]) {
			t.Errorf("dir %q: %+v, %v\nwant %+v", dir, job, err, f.Jobs[0])
		}
	}
	if job, err := Inline([]string{"a"}, sched.Rigid(1), "", ""); err != nil || job.Spec.Name != "" {
		t.Errorf("%+v, %v, want no name", job, err)
	}
}

func TestInlineErrors(t *testing.T) {
	one := sched.Rigid(1)
	for _, c := range []struct {
		command   []string
		gpus      sched.Range
		name, dir string
		want      string
	}{
		{nil, one, "", "", "jobfile: no command, want one, as in: python train.py"},
		{[]string{""}, one, "", "", `jobfile: command starts with "", want a program`},
		{[]string{"a", "\x00"}, one, "", "", "jobfile: command[1] has a NUL byte, want none"},
		{[]string{"a"}, sched.Rigid(0), "", "", "jobfile: gpus 0..0 with default 0, want min <= default <= max from " +
			"1 to 1024"},
		{[]string{"a"}, sched.Range{Min: 2, Want: 1, Max: 4}, "", "", "jobfile: gpus 2..4 with default 1, want min " +
			"<= default <= max from 1 to 1024"},
		{[]string{"a"}, one, "12", "", `jobfile: name "12" is a number, want a letter, _, - or dot in it: a number ` +
			`means the job that has it`},
		{[]string{"a"}, one, "a/b", "", `jobfile: name "a/b", want ` + nameWanted},
		{[]string{"a"}, one, "a", "\x00", "jobfile: dir has a NUL byte, want none"},
	} {
		if _, err := Inline(c.command, c.gpus, c.name, c.dir); fmt.Sprint(err) != c.want {
			t.Errorf("%v: %v, want %s", c, err, c.want)
		}
	}
}
