package freeze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

const resultsHeader = `# What must not change: systems on bundled traces. See doc.go of this package.
# Written by go test ./internal/freeze -rewrite.
# variant, system, hash of the event log, digests: events-out (without schema and version), --json, jobs-out
`

// Ensure that no system decides otherwise than it did: each event log, document and table of jobs is the frozen one.
func TestResults(t *testing.T) {
	table := readRows(t, "results.txt")
	known := systemNames(t)
	small := map[string]bool{}
	t.Run("runs", func(t *testing.T) {
		dir := inputs(t)
		for _, v := range withOthers(variants(), known) {
			small[v.name] = v.small
			for _, system := range v.systems {
				if testing.Short() && !v.small {
					continue
				}
				t.Run(v.name+"/"+system, func(t *testing.T) {
					t.Parallel()
					table.add(t, v.name+" "+system, outcome(t, dir, v, system))
				})
			}
		}
	})
	table.end(t, resultsHeader, func(name string) bool {
		variant, _, _ := strings.Cut(name, " ")
		return !testing.Short() || small[variant]
	})
}

// Ensure the same of systems that know what is shared by others: throughputs and profiles as they were measured.
func TestResultsOnData(t *testing.T) {
	if testing.Short() {
		t.Skip("small traces alone")
	}
	data := shareddata.DataDir(t)
	table := readRows(t, "results-data.txt")
	t.Run("runs", func(t *testing.T) {
		dir := inputs(t)
		if err := os.Symlink(data, filepath.Join(string(dir), "data")); err != nil {
			t.Fatal(err)
		}
		for _, v := range dataVariants() {
			for _, system := range v.systems {
				t.Run(v.name+"/"+system, func(t *testing.T) {
					t.Parallel()
					table.add(t, v.name+" "+system, outcome(t, dir, v, system))
				})
			}
		}
	})
	table.end(t, resultsHeader, func(string) bool { return true })
}

// systemNames returns the names of all systems.
func systemNames(t *testing.T) (names []string) {
	t.Helper()
	var doc struct{ Systems []struct{ Name string } }
	if err := json.Unmarshal(folder(t.TempDir()).run(t, "systems", "--json"), &doc); err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.Systems {
		names = append(names, s.Name)
	}
	if len(names) < 26 {
		t.Fatalf("%d systems, want at least 26", len(names))
	}
	return names
}

// outcome runs a system in a variant and returns the figures of its row.
func outcome(t *testing.T, dir folder, v variant, system string) string {
	t.Helper()
	out := folder(t.TempDir())
	args := []string{"simulate", "--quiet", "--json", "--system", system, "--jobs-out", string(out) + "/jobs.csv"}
	args = append(args, v.args...)
	if !v.noLog {
		args = append(args, "--events-out", string(out)+"/log.jsonl")
	}
	if v.budget != "" && slices.Contains(renting, system) {
		args = append(args, "--budget", v.budget)
	}
	doc := dir.run(t, args...)
	row := fmt.Sprintf("json=%s jobs=%s", document(t, doc), digest(out.read(t, "jobs.csv")))
	if v.noLog {
		return row
	}
	return fmt.Sprintf("hash=%s events=%s %s", logHash(t, doc), digest(behindVersion(t, out.read(t, "log.jsonl"))), row)
}

// logHash returns the hash of the event log that a document of simulate states.
func logHash(t *testing.T, doc []byte) string {
	t.Helper()
	var d struct {
		Results []struct {
			Hash string `json:"log_hash"`
		}
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Results) != 1 || d.Results[0].Hash == "" {
		t.Fatalf("document states no hash of its event log:\n%s", doc)
	}
	return d.Results[0].Hash
}

var headerStart = regexp.MustCompile(`^\{"schema":"trainyard\.log/v[0-9]+","version":"[^"]*",`)

// behindVersion returns an event log without the fields schema and version of its header.
func behindVersion(t *testing.T, log []byte) []byte {
	t.Helper()
	start := headerStart.Find(log)
	if start == nil {
		t.Fatalf("header %.120q, want schema and version first", log)
	}
	return bytes.TrimPrefix(log, start)
}
