package browser

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// edge is a run at the edge of what there may be: how its report is made, and what each of its pages says.
type edge struct {
	name   string
	trace  string // of simulate; "" = there is none
	args   []string
	system string                    // "" = fifo
	log    func(whole string) string // makes a log of that of 40 jobs at once, for replay
	says   map[string]string         // by address
	fails  bool                      // the command fails, and its report has what can be read
}

const columns = "job_id,submit_s,num_gpus,duration_s,user\n"

// rows are n jobs made by a format of their number.
func rows(n int, format string) string {
	var b strings.Builder
	b.WriteString(columns)
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

// lines returns the first n lines of a log.
func lines(whole string, n int) string {
	return strings.Join(strings.SplitAfter(whole, "\n")[:n], "")
}

var edges = []edge{
	{name: "one", trace: columns + "only,0,2,100,ann\n", args: []string{"--cluster", "1x4"},
		says: map[string]string{"#/jobs": "1 of 1 jobs", "#/compare": "1m40s"}},
	{name: "ages", trace: columns + "long,0,2,315360000,ann\nshort,5,1,0.000001,bob\nlater,315360010,4,0.0005,cy\n",
		args: []string{"--cluster", "1x4"}, says: map[string]string{"#/compare": "3650d", "#/about": "rounded",
			"#/job?id=1": "short"}},
	{name: "never", trace: columns + "a,0,20,100,ann\nb,1,30,100,bob\n", args: []string{"--cluster", "2x2"},
		says: map[string]string{"#/compare": "No job finished", "#/time": "0 attempts of 2 jobs",
			"#/job?id=0": "never-started"}},
	{name: "once", trace: rows(40, "j%d,0,3,20,ann"), args: []string{"--cluster", "2x4"},
		says: map[string]string{"#/jobs": "40 of 40 jobs"}},
	{name: "node", trace: rows(60, "j%d,0,997,20,ann"), args: []string{"--cluster", "1x10000"},
		says: map[string]string{"#/time": "10\u202f000 GPUs of 1 node"}},
	{name: "preset", trace: rows(4, "j%d,0,3,20,ann"), system: "tiresias-las",
		args: []string{"--cluster", "2x4", "--preset", "tiresias"},
		says: map[string]string{"#/time": "a simulator of its own that knows no GPUs",
			"#/losses": "a simulator of its own that knows no GPUs", "#/jobs": "4 of 4 jobs"}},
	{name: "nothing", log: func(whole string) string { return lines(whole, 1) },
		says: map[string]string{"#/compare": "no jobs in this report"}},
	{name: "unfinished", log: func(whole string) string { return lines(whole, startOf(whole, 3)) },
		says: map[string]string{"#/compare": "No job finished", "#/jobs": "40 of 40 jobs"}},
	{name: "cut", log: func(whole string) string { return lines(whole, 90) + `{"seq":` }, fails: true,
		says: map[string]string{"#/compare": "log: cut.in: line 91"}},
	{name: "damaged", log: func(whole string) string { return lines(whole, 90) + "{\"damaged\n" + lines(whole, 99) },
		fails: true, says: map[string]string{"#/compare": "line 91"}},
	{name: "parts", log: func(string) string { return live("parts-tiresias-las") },
		says: map[string]string{"#/compare": "3 parts, read as one run",
			"#/time": "4 slots of 1 node", "#/losses": "slot-hours", "#/jobs": "slot-hours"}},
}

// startOf returns the number of lines before the first of a batch.
func startOf(whole string, batch int) int {
	before, _, _ := strings.Cut(whole, fmt.Sprintf(`,"batch":%d,`, batch))
	return strings.Count(before, "\n")
}

// live returns a frozen log of real processes.
func live(name string) string {
	file, err := os.Open(filepath.Join(root, "internal", "freeze", "testdata", "live", name+".jsonl.gz"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	in, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Ensure that runs with next to nothing in them, or with very much of one thing, make a report of which every page
// opens and says what it has, without an error and without a figure that is none.
func TestEdges(t *testing.T) {
	dir := t.TempDir()
	bin := trainyard(t)
	if err := os.WriteFile(filepath.Join(dir, "whole.csv"), []byte(rows(40, "j%d,0,3,20,ann")), 0o644); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "whole.jsonl")
	run(t, "simulate", "--trace", filepath.Join(dir, "whole.csv"), "--cluster", "2x4", "--system", "fifo",
		"--events-out", log)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, 1280, 900, false)
	for _, e := range edges {
		out := filepath.Join(dir, e.name+".html")
		in, args := filepath.Join(dir, e.name+".in"), []string{"replay"}
		text := e.trace
		if e.log != nil {
			text = e.log(string(whole))
			args = append(args, in)
		} else {
			in += ".csv"
			args = append([]string{"simulate", "--trace", in, "--system", cmp.Or(e.system, "fifo")}, e.args...)
		}
		if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bin, append(args, "--report", out)...)
		if said, failed := cmd.CombinedOutput(); (failed != nil) != e.fails {
			t.Errorf("%s: %v: %s", e.name, failed, said)
			continue
		}
		b.show(out)
		b.looksWhole(e)
	}
	b.closed()
}

// looksWhole opens every page of a report, and fails where one shows what is no figure, or lacks what it is to say.
func (b *browser) looksWhole(e edge) {
	b.t.Helper()
	for _, hash := range []string{"#/compare", "#/time", "#/time?level=jobs", "#/jobs", "#/job?id=0", "#/job?id=1",
		"#/losses", "#/people", "#/energy", "#/decision", "#/about"} {
		b.goTo(hash)
		text := value[string](b, `document.body.innerText`)
		for _, none := range []string{"NaN", "undefined", "Infinity", "[object", "null"} {
			if strings.Contains(text, none) {
				b.t.Errorf("%s: %s shows %q: %.900s", e.name, hash, none, text)
			}
		}
		if want := e.says[hash]; !strings.Contains(text, want) {
			b.t.Errorf("%s: %s says %.900q, want %q in it", e.name, hash, text, want)
		}
		if hash == "#/compare" || hash == "#/time" || hash == "#/job?id=0" {
			b.shot("edge-" + e.name + "-" + strings.Trim(strings.Split(hash, "?")[0], "#/"))
		}
	}
}
