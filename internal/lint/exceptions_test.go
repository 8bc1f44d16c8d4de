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
	name   string // the name of the finding; with "..." at its end, how it starts
	reason string
}

// mostExceptions bounds the table: what deserves more needs another shape, not another row.
const mostExceptions = 12

var exceptions = []exception{
	{"fields", "api/documents.go", "Job", plain},
	{"fields", "metrics/result.go", "Result", plain},
	{"fields", "sched/job.go", "Job", "a row of the View"},
	{"methods", "kube/internal/fakenode", "Fleet", "pretended nodes of Kubernetes: a method for each thing that " +
		"kubelet, device driver and tests do to it, all under one lock"},
	{"words-strings", "api/role.go", "nobody", "the word of the role in tokens and documents of the API"},
	{"words-strings", "manager/store/create.go", "begin", "SQL"},
	{"words-strings", "cli/jobs/sbatchmore.go", "begin", "an option of Slurm's sbatch"},
	{"words-strings", "manager/manager.go", "handed in", "every log of a manager names its jobs so"},
	{"duplicates", "replica/tiresias/naive_test.go", "replica/tiresias/loop.go", "the twin of the loop: it must " +
		"share nothing with what it checks"},
	{"reached", "driver/local/device/fake", "driver/local/device...", "pretended and recorded devices: a kit of the " +
		"tests of two packages, on types of this one"},
	{"reached", "api/client.go", "api.Client.DrainNode", "programs that use the client drain one node of several " +
		"by it"},
	{"reached", "model/elastic/dptable.go", "model/elastic...", "the division by the definition, to which tests of " +
		"two packages hold the solver"},
}

const plain = "a plain document: what its reader gets is its fields, and it has no other state"

func excepted(lint string, f finding) bool {
	for i := range exceptions {
		if e := &exceptions[i]; e.lint == lint && e.covers(f) {
			return true
		}
	}
	return false
}

// covers says whether the exception is for the finding.
func (e *exception) covers(f finding) bool {
	start, all := strings.CutSuffix(e.name, "...")
	return strings.HasPrefix(f.at, e.where) && (f.name == e.name || all && strings.HasPrefix(f.name, start))
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
				used = used || e.covers(f)
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
	"duplicates":    func(tr *tree) []finding { return duplicates(tr, fewestDuplicated) },
	"reached": func(*tree) []finding {
		found, _ := unreachedOfAll() // TestReached says what went wrong
		return found
	},
}

func mapFS(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}
