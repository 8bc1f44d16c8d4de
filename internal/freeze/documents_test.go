package freeze

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const documentsHeader = `# What must not change: what verbs other than simulate print. See doc.go of this package.
# Written by go test ./internal/freeze -rewrite.
# name, verb, digest of what it prints
`

// printed is a command of which the output is frozen: a document where it has --json, else its bytes.
type printed struct{ name, command string }

var documents = []printed{
	{"plan", "plan --workload classes.yaml --budget 64 --json"},
	{"plan-boa", "plan --workload classes.yaml --budget 64 --method boa --json"},
	{"plan-continuous", "plan --workload gputypes.yaml --budget 12 --continuous --json"},
	{"plan-reserve", "plan --workload classes.yaml --budget 64 --reserve-price 1 --rent-price 2.5 --json"},
	{"plan-types", "plan --workload gputypes.yaml --budget 12 --json"},
	{"plan-trace", "plan --workload elastic.csv --profiles tables --max-gpus 8 --budget 26 --json"},
	{"plan-verify", "plan --workload elastic.csv --profiles tables --max-gpus 8 --budget 26 --verify --json"},
	{"plan-elastic", "plan --workload elastic.csv --profiles tables --elastic 60 --json"},
	{"describe-mixed", "trace describe mixed.csv --cluster racks.yaml --json"},
	{"describe-philly", "trace describe philly.csv --json"},
	{"describe-testbed", "trace describe testbed.csv --cluster 15x4 --json"},
	{"convert-mixed", "trace convert mixed.csv --notes"},
	{"convert-swf", "trace convert mixed.csv --to swf"},
	{"generate-philly", "trace generate --like philly --jobs 300 --seed 2"},
	{"generate-venus", "trace generate --like venus --jobs 300 --load 0.9 --cluster 16x8"},
	{"generate-pai", "trace generate --like pai --jobs 300 --days 3"},
	{"generate-seren", "trace generate --like seren --jobs 300"},
	{"simulate-together", "simulate --quiet --trace mixed.csv --cluster 6x4 --system fifo,fifo-skip,las --json"},
	{"replay-reload", "replay live/tiresias-gittins.jsonl --reload --json"},
	{"whatif-las", "whatif --log live/las.jsonl --json"},
	{"whatif-pollux", "whatif --log live/pollux.jsonl --system srtf,fifo-easy,elastic-fifo --json"},
	{"experiment-consolidation", "experiment consolidation --json"},
}

// slowDocuments take seconds and are left out with -short. They need no shared data, and run on what stands in for it.
var slowDocuments = []printed{
	{"experiment-boa", "experiment boa --seeds 1 --json"},
	{"experiment-eaco", "experiment eaco --json"},
	{"experiment-pal", "experiment pal --json"},
	{"experiment-stragglers", "experiment stragglers --seeds 1 --json"},
}

// Ensure that plans, traces, experiments, replays and what-ifs come out as they did.
func TestDocuments(t *testing.T) {
	table := readRows(t, "documents.txt")
	run, skipped := documents, map[string]bool{}
	for _, p := range slowDocuments {
		skipped[p.name] = testing.Short()
		if !testing.Short() {
			run = append(run[:len(run):len(run)], p)
		}
	}
	t.Run("runs", func(t *testing.T) {
		dir := inputs(t)
		unpackLogs(t, filepath.Join(string(dir), "live"))
		for _, p := range run {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				args := strings.Fields(p.command)
				out := dir.run(t, args...)
				sum := digest(out)
				if args[len(args)-1] == "--json" {
					sum = document(t, out)
				}
				table.add(t, p.name, "out="+sum)
			})
		}
	})
	table.end(t, documentsHeader, func(name string) bool { return !skipped[name] })
}

// liveLogs are logs of real processes on 4 CPU slots, one of each system: of jobs that were preempted, resized and
// restarted, of one that failed twice.
var liveLogs = []string{"afs-l", "eaco", "elastic", "fifo-easy", "gandiva", "las", "pollux", "srtf", "tiresias-gittins",
	"tiresias-las"}

// unpackLogs writes the live logs to a new folder.
func unpackLogs(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, log := range slices.Concat(liveLogs, parted()) {
		name := log + ".jsonl"
		if err := os.WriteFile(filepath.Join(dir, name), unpack(t, "testdata/live/"+name+".gz"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// parted returns the names of the same logs in three parts each, as a controller writes them: the second and third part
// start with the state and the memory of that moment, packed in their headers.
func parted() (names []string) {
	for _, system := range liveLogs {
		names = append(names, "parts-"+system)
	}
	return names
}

// unpack returns what a gzipped file holds.
func unpack(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Ensure that every decision in a log of real processes is decided again alike, also from a packed state and memory on,
// and that a changed decision is seen.
func TestReplay(t *testing.T) {
	dir := folder(t.TempDir())
	unpackLogs(t, string(dir))
	for _, system := range liveLogs {
		for _, flag := range []string{"", "--reload"} {
			args := append([]string{"replay", system + ".jsonl"}, strings.Fields(flag)...)
			want := []byte("every decision of " + system + " is the same; log hash ")
			if out := dir.run(t, args...); !bytes.Contains(out, want) {
				t.Errorf("trainyard %s: %s", strings.Join(args, " "), out)
			}
		}
		_, hash, _ := bytes.Cut(dir.run(t, "replay", system+".jsonl"), []byte("log hash "))
		for _, flag := range []string{"", "--reload"} {
			args := append([]string{"replay", "parts-" + system + ".jsonl"}, strings.Fields(flag)...)
			want := append([]byte("3 parts; log hash "), hash...)
			if out := dir.run(t, args...); !bytes.HasSuffix(out, want) {
				t.Errorf("trainyard %s: %s\nwant %s at the end", strings.Join(args, " "), out, want)
			}
		}
	}
	log := unpack(t, "testdata/live/las.jsonl.gz")
	decision := []byte(`"event":"decided","job":0,"gpus":[0,1]`)
	changed := bytes.Replace(log, decision, bytes.Replace(decision, []byte("[0,1]"), []byte("[0,2]"), 1), 1)
	if bytes.Equal(changed, log) {
		t.Fatal("las.jsonl: no decision to change")
	}
	if err := os.WriteFile(filepath.Join(string(dir), "changed.jsonl"), changed, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, code, _ := dir.exit(t, program, "replay", "changed.jsonl"); code != 1 {
		t.Errorf("replay of a log with a changed decision: exit code %d, want 1\n%s", code, out)
	}
}
