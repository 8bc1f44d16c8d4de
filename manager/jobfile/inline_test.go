package jobfile

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Ensure that a job of a command line is that of a file with the same words.
func TestInline(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": here, ".": here, "x": filepath.Join(here, "x"), "/data": "/data"} {
		f := parse(t, fmt.Sprintf("jobs: [{name: a, command: [python, '-u', '$X'], gpus: 2, dir: %s}]", want))
		job, err := Inline([]string{"python", "-u", "$X"}, 2, "a", dir)
		if err != nil || !reflect.DeepEqual(job, f.Jobs[0]) {
			t.Errorf("dir %q: %+v, %v\nwant %+v", dir, job, err, f.Jobs[0])
		}
	}
	if job, err := Inline([]string{"a"}, 1, "", ""); err != nil || job.Spec.Name != "" {
		t.Errorf("%+v, %v, want no name", job, err)
	}
}

func TestInlineErrors(t *testing.T) {
	for _, c := range []struct {
		command   []string
		gpus      int
		name, dir string
		want      string
	}{
		{nil, 1, "", "", "jobfile: no command, want one, as in: python train.py"},
		{[]string{""}, 1, "", "", `jobfile: command begins with "", want a program`},
		{[]string{"a", "\x00"}, 1, "", "", "jobfile: command[1] has a NUL byte, want none"},
		{[]string{"a"}, 0, "", "", "jobfile: gpus 0, want a whole number from 1 to 1024"},
		{[]string{"a"}, 1 << 40, "", "", "jobfile: gpus 1099511627776, want a whole number from 1 to 1024"},
		{[]string{"a"}, 1, "a/b", "", `jobfile: name "a/b", want ` + nameWish},
		{[]string{"a"}, 1, "a", "\x00", "jobfile: dir has a NUL byte, want none"},
	} {
		if _, err := Inline(c.command, c.gpus, c.name, c.dir); fmt.Sprint(err) != c.want {
			t.Errorf("%v: %v, want %s", c, err, c.want)
		}
	}
}
