package jobfile

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/docexample"
	"github.com/trainyard/trainyard/sched"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

func parse(t testing.TB, src string) *File {
	t.Helper()
	f, err := Parse([]byte(src), "/lab/jobs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// names returns the names of the jobs of f, each with the numbers of those it waits for.
func names(f *File) string {
	var list []string
	for i := range f.Jobs {
		s := f.Jobs[i].Spec.Name
		if after := f.Jobs[i].Spec.After; after != nil {
			s += fmt.Sprint(after)
		}
		list = append(list, s)
	}
	return strings.Join(list, " ")
}

// Ensure that the example of the package comment means what its comments say, to the letter of every field and of the
// hash.
func TestDocExample(t *testing.T) {
	f := parse(t, docexample.Of(t))
	var b bytes.Buffer
	fmt.Fprintf(&b, "path %s\nhash %s\n", f.Path, f.Hash)
	for i := range f.Jobs {
		fmt.Fprintf(&b, "\n%d at %v\n%+v\n%s\n", i, f.Jobs[i].Submit, f.Jobs[i].Spec, f.Jobs[i].Task.Encode())
	}
	golden := filepath.Join("testdata", "doc.golden")
	if *rewrite {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Ensure that what may be left out has the documented default.
func TestDefaults(t *testing.T) {
	f := parse(t, "jobs: [{command: [a]}, {command: [b], count: 2}, {command: [c], name: x}, {command: [d]}]")
	if got, want := names(f), "job-1 job-2 job-3 x job-4"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
	want := Job{Spec: sched.JobSpec{Name: "job-1", GPUs: sched.Rigid(1)},
		Task: task.Task{Command: []string{"a"}, Dir: "/lab", Grace: 30 * time.Second}}
	if !reflect.DeepEqual(f.Jobs[0], want) {
		t.Errorf("got %+v\nwant %+v", f.Jobs[0], want)
	}
}

// Ensure that a job overrides the defaults key by key, that its variables are added to theirs, and that nothing leaks
// into the next job.
func TestOverride(t *testing.T) {
	f := parse(t, `
jobs:
  - {env: {A: 1, B: 2}, gpus: 3, share: never, dir: ../x}
  - {command: [c], grace: 2s, priority: -1}
defaults: {env: {A: 0, C: 3}, command: [a, b], gpus: {max: 8}, share: require, dir: sub, submit: 0, priority: +7}
`)
	a, b := f.Jobs[0], f.Jobs[1]
	if got, want := a.Task.Encode(),
		`{"command":["a","b"],"dir":"/x","env":{"A":"1","B":"2","C":"3"},"grace_ns":30000000000}`; got != want {
		t.Errorf("first %s, want %s", got, want)
	}
	if got, want := b.Task.Encode(),
		`{"command":["c"],"dir":"/lab/sub","env":{"A":"0","C":"3"},"grace_ns":2000000000}`; got != want {
		t.Errorf("second %s, want %s", got, want)
	}
	if a.Spec.GPUs != sched.Rigid(3) || a.Spec.Share != sched.ShareNever || a.Spec.Priority != 7 {
		t.Errorf("first %+v", a.Spec)
	}
	if (b.Spec.GPUs != sched.Range{Min: 1, Want: 8, Max: 8}) || b.Spec.Share != sched.ShareRequire ||
		b.Spec.Priority != -1 {
		t.Errorf("second %+v", b.Spec)
	}
}

// Ensure that arguments and variables are the text that was written.
func TestText(t *testing.T) {
	f := parse(t, `
jobs:
  - command:
      - python
      - -c
      - |
        import torch
        print("$HOME; rm -rf")
      - 1e-3
      - 010
      - 0x1F
      - yes
      - true
      - ""
      - 'it''s'
      - "\u00e9\t\\"
      - .5
      - 1_000
      - --flag=a:b
    env: {A: on, B: 1.50, C: "", D: False, _e1: "x=y"}
`)
	want := []string{"python", "-c", "import torch\nprint(\"$HOME; rm -rf\")\n", "1e-3", "010", "0x1F", "yes", "true",
		"", "it's", "é\t\\", ".5", "1_000", "--flag=a:b"}
	if got := f.Jobs[0].Task; !reflect.DeepEqual(got.Command, want) {
		t.Errorf("command %q\nwant    %q", got.Command, want)
	} else if got, want := fmt.Sprint(got.Env), "map[A:on B:1.50 C: D:False _e1:x=y]"; got != want {
		t.Errorf("env %s, want %s", got, want)
	}
}

// Ensure that jobs come by submit time, then as in the file, and never before one that they wait for.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"jobs: [{name: a, submit: 2s}, {name: b, submit: 1s}, {name: c, submit: 2s}, {name: d}]", "d b a c"},
		{"jobs: [{name: a, after: [c]}, {name: b}, {name: c}, {name: d}]", "b c a[1] d"},
		{"jobs: [{name: a, after: [b], submit: 3s}, {name: b, submit: 3s, after: [c]}, {name: c, submit: 1s}]",
			"c b[0] a[1]"},
		{"jobs: [{name: a, count: 2, after: [b]}, {name: b, count: 2, after: [c]}, {name: c, count: 1}]",
			"c-1 b-1[0] b-2[0] a-1[1 2] a-2[1 2]"},
		{"jobs: [{name: a, after: [b-2, b, b-1]}, {name: b, count: 3}]", "b-1 b-2 b-3 a[0 1 2]"},
		{"jobs: [{name: a, after: [b-2]}, {name: b, count: 3}]", "b-1 b-2 a[1] b-3"},
		{"jobs: [{after: [job-3]}, {}, {after: []}]", "job-2 job-3 job-1[1]"},
	} {
		f := parse(t, c.src+"\ndefaults: {command: [x]}")
		if got := names(f); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.src, got, c.want)
		}
	}
}

// Ensure that ends, patterns and files of variables are read, and that a value of a job's own replaces a default from a
// file, and the other way round.
func TestReferences(t *testing.T) {
	f := parse(t, "defaults: {command: [x], env: {A: {from_file: a}, B: b}}\n"+
		"jobs: [{env: {A: 1, B: {from_file: /b}}, retry: {max: 2, on: [node_fail, exit:75, signal:KILL]}, progress: "+
		"{regex: 'it (?P<step>.*)'}}, {}]")
	own, base := f.Jobs[0].Task, f.Jobs[1].Task
	if fmt.Sprint(own.Env, own.EnvFiles) != "map[A:1] map[B:/b]" ||
		fmt.Sprint(base.Env, base.EnvFiles) != "map[B:b] map[A:"+filepath.Join(base.Dir, "a")+"]" {
		t.Errorf("%v %v, %v %v", own.Env, own.EnvFiles, base.Env, base.EnvFiles)
	}
	if own.Pattern != "it (?P<step>.*)" || !own.Retries(75) || !own.Retries(137) || own.Retries(1) || !base.Retries(1) {
		t.Errorf("%+v", own)
	}
}

// Ensure that the hash is that of the meaning: of no comment, style or way to write a copy or a default, but of all
// else.
func TestHash(t *testing.T) {
	const base = "jobs: [{name: a-1, command: [x, '1'], gpus: 2}, {name: a-2, command: [x, '1'], gpus: 2}]"
	want := parse(t, base).Hash
	if len(want) != 64 {
		t.Errorf("hash %q", want)
	}
	for _, same := range []string{
		"# a comment\n" + base,
		"jobs:\n- command: [x, 1]\n  count: 2\n  name: a\n  gpus: {min: 2, max: 2}\n",
		"jobs: [{name: a, count: 2}]\ndefaults: {command: ['x', \"1\"], gpus: 2, grace: 0.5m, dir: ., share: never, " +
			"env: {}, checkpoint: {to: top}}",
	} {
		if got := parse(t, same).Hash; got != want {
			t.Errorf("%s: another hash", same)
		}
	}
	seen := map[string]string{want: base}
	for _, change := range []string{"submit: 1s", "user: u", "group: u", "model: u", "class: u", "priority: 1",
		"retries: 1", "gpus: {max: 2}", "gpus: {max: 2, default: 1}",
		"batch: {global_min: 1, global_max: 2}", "wall_time: 1s", "share: allow", "share: require", "cpus: 1",
		"memory_gb: 1", "gpu_memory_gb: 1", "gpu_use: 0.5", "epochs: 2",
		"output: {max: 1GiB}",
		"grace: 1s", "retry: {max: 1, on: [exit:75]}", "progress: {regex: '(?P<step>.)'}", "env: {A: {from_file: x}}",
		"checkpoint: {to: leader}", "checkpoint: {to: all}", "dir: x", "env: {A: 1}", "env: {A: 2}", "command: [x1]",
		"name: b", "after: [z]", "count: 2"} {
		src := "jobs: [{command: [z], name: z}, {" + change + "}]\ndefaults: {command: [x]}"
		if got := parse(t, src).Hash; seen[got] != "" {
			t.Errorf("%s: the hash of %s", src, seen[got])
		} else {
			seen[got] = src
		}
	}
	if f, err := Parse([]byte(base), "/lab2/jobs.yaml"); err != nil || f.Hash == want {
		t.Error("same hash in another folder")
	}
}

// Ensure that a file is read, and that the reason why it cannot be is reported and wrapped.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.yaml")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != "jobfile: "+path+": no such file or directory, want a YAML file of jobs" {
		t.Error(err)
	}
	if _, err := Read(dir); err == nil ||
		!strings.HasSuffix(err.Error(), ": is a directory, want a YAML file of jobs") {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("jobs: [{command: [true]}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Read(path)
	if err != nil || f.Path != path || f.Jobs[0].Task.Dir != dir || f.Jobs[0].Task.Command[0] != "true" {
		t.Errorf("%+v, %v", f, err)
	}
	t.Chdir(dir)
	if g, err := Read("jobs.yaml"); err != nil || g.Hash != f.Hash || g.Path != "jobs.yaml" ||
		g.Jobs[0].Task.Dir != dir {
		t.Errorf("%+v, %v", g, err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), MaxFile+9), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); fmt.Sprint(err) != "jobfile: "+path+":1:1: more than 2 MiB, want less" {
		t.Error(err)
	}
}

// Ensure that the largest lists are read.
func TestLargest(t *testing.T) {
	f := parse(t, fmt.Sprintf("jobs: [{name: a, command: [x], count: %d}]", MaxJobs))
	if len(f.Jobs) != MaxJobs || f.Jobs[MaxJobs-1].Spec.Name != "a-100000" {
		t.Errorf("%d jobs", len(f.Jobs))
	}
	f = parse(t, "jobs: [{name: a, command: [x], count: 1000, after: [b]}, {name: b, command: [x], count: 1000}]")
	if n := len(f.Jobs[1999].Spec.After); n != 1000 {
		t.Errorf("%d waits", n)
	}
}
