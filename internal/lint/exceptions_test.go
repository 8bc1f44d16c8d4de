package lint

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// exception keeps one finding from being counted.
type exception struct {
	lint   string
	where  string // the file of the finding, or the start of its path
	name   string // the name of the finding
	reason string
}

// mostExceptions bounds the table: what deserves more needs another shape, not another row.
const mostExceptions = 12

var exceptions = []exception{
	{"fields", "api/documents.go", "Job", plain},
	{"fields", "metrics/result.go", "Result", plain},
	{"fields", "sched/job.go", "Job", "a row of the View; its JSON is part of every log, so its fields stay where " +
		"they are"},
	{"methods", "kube/internal/fakenode", "Fleet", "pretended nodes of Kubernetes: a method for each thing that " +
		"kubelet, device driver and tests do to it, all under one lock"},
	{"words-strings", "api/role.go", "nobody", "the word of the role in tokens and documents of the API"},
	{"words-strings", "manager/store/create.go", "begin", "SQL"},
	{"words-strings", "manager/manager.go", "handed in", "every log of a manager names its jobs so"},
	{"words-strings", "driver/local/device/replay_test.go", "beginning", "a text of encoding/json"},
}

const plain = "a plain document: what its reader gets is its fields, and it has no other state"

func excepted(lint string, f finding) bool {
	for _, e := range exceptions {
		if e.lint == lint && strings.HasPrefix(f.at, e.where) && f.name == e.name {
			return true
		}
	}
	return false
}

// TestExceptions: few, each with a reason, each still needed.
func TestExceptions(t *testing.T) {
	if len(exceptions) > mostExceptions {
		t.Errorf("%d exceptions, want at most %d", len(exceptions), mostExceptions)
	}
	tr := repository(t)
	for _, e := range exceptions {
		lint := byName[e.lint]
		switch {
		case e.reason == "" || e.name == "" || e.where == "":
			t.Errorf("%+v: want a place, a name and a reason", e)
		case lint == nil:
			t.Errorf("%s: no such lint", e.lint)
		default:
			used := false
			for _, f := range lint(tr) {
				used = used || strings.HasPrefix(f.at, e.where) && f.name == e.name
			}
			if !used {
				t.Errorf("%s, %s, %s: nothing is found there any more; delete the exception", e.lint, e.where, e.name)
			}
		}
	}
}

// byName are the lints that may have exceptions.
var byName = map[string]func(*tree) []finding{
	"complexity":    complexity,
	"fields":        fields,
	"methods":       methods,
	"words-strings": wordsOfStrings,
}

func mapFS(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}
