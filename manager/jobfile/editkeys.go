package jobfile

import (
	"maps"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/sched"
)

// Fixed are the keys of a job that no edit changes: who it is, how many there are, and what it waits for.
var Fixed = []string{"name", "count", "array", "after", "submit", "user", "inherit_env", "snapshot"}

// AtOnce are the keys whose change holds of an attempt that runs, and of how its end is taken; that of others holds of
// the next attempt.
var AtOnce = []string{"priority", "gpus", "retries", "retry", "time_limit", "grace", "notify", "wall_time", "model",
	"class", "group"}

// Edit returns a job with other keys, and which they are, in order of name: yaml is a mapping of keys as in a job of
// a file. Paths in it are relative to folder. Errors name the key.
func Edit(spec sched.JobSpec, t task.Task, yaml []byte, folder string) (Job, []string, error) {
	r := &reader{&strictyaml.Reader{Prefix: "edit", File: "keys"}, folder, true, Fixed}
	var doc ast.Node
	e := entry{name: spec.Name, spec: spec, task: t}
	e.task.Env, e.task.EnvFiles = maps.Clone(t.Env), maps.Clone(t.EnvFiles)
	if e.task.Env == nil {
		e.task.Env = make(map[string]string)
	}
	if t.TimeLimit > 0 && spec.WallTime == t.TimeLimit {
		e.spec.WallTime = 0 // it follows the limit
	}
	var names []string
	if doc = r.Document(yaml, MaxFile, "keys"); r.Err() != nil {
		return Job{}, nil, r.Err()
	}
	m, is := doc.(*ast.MappingNode)
	if !is || len(m.Values) == 0 {
		r.Fail(doc, "no keys, want KEY: VALUE")
		return Job{}, nil, r.Err()
	}
	for _, v := range m.Values {
		name := v.Key.GetToken().Value
		if slices.Contains(Fixed, name) {
			r.FailAt(v.Key.GetToken().Position, "%s stays as it is once a job is submitted, want other keys", name)
			return Job{}, nil, r.Err()
		}
		names = append(names, name)
	}
	e = r.entry(doc, e)
	if r.Err() != nil {
		return Job{}, nil, r.Err()
	}
	if slices.Contains(names, "command") { // its script is another, or elsewhere
		e.task.Script = task.Script{}
	}
	if slices.Contains(names, "dir") { // it runs there, in no copy
		e.task.Tree = task.Tree{}
	}
	slices.Sort(names)
	e.spec.Saves = e.task.Checkpoint.Declared()
	return Job{Spec: e.spec, Task: e.task}, slices.Compact(names), nil
}
