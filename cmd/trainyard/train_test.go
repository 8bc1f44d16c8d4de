package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// training is some jobs alike, each a real trainer.
type training struct {
	name          string
	gpus, steps   int
	pace          string // of a step at width 1
	count, submit int    // submit in milliseconds
	wall          string
}

// tenJobs are two long jobs on all slots, and others that come when those have been demoted.
var tenJobs = []training{
	{"long", 2, 100, "40ms", 2, 0, "2s"},
	{"short", 1, 20, "10ms", 3, 900, "200ms"},
	{"wide", 4, 40, "40ms", 1, 1300, "400ms"},
	{"late", 1, 15, "10ms", 4, 1800, "150ms"},
}

// jobFile writes the jobs to a file in a new folder, in which nothing runs any more once the test is over.
func jobFile(t *testing.T, jobs []training) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := endJobs(dir); err != nil {
			t.Error(err)
		}
	})
	var b strings.Builder
	b.WriteString("jobs:\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "  - {name: %s, preemptible: true, count: %d, gpus: %d, submit: %dms, wall_time: %s, "+
			"command: [%s, --steps, %d, --step-time, %s, --checkpoint-every, 7]}\n",
			j.name, j.count, j.gpus, j.submit, j.wall, strconv.Quote(filepath.Join(programs, "trainer")), j.steps,
			j.pace)
	}
	path := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trainyard runs the real program, which must end with the exit code, and returns what it said.
func trainyard(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainyard"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("trainyard %s: %v, want exit code %d\n%s\n%s", strings.Join(args, " "), err, code, out.String(),
			errs.String())
	}
	return out.String(), errs.String()
}

var hashField = regexp.MustCompile(`(?m)^TRAINYARD done .* hash=([0-9a-f]{64})$`)

// undisturbed returns the hash of the model that a job of a width trains when it is left alone.
func undisturbed(t *testing.T, steps, gpus int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "trainer"), "--steps", strconv.Itoa(steps))
	cmd.Env = []string{fmt.Sprint("TRAINYARD_NUM_GPUS=", gpus)}
	out, err := cmd.Output()
	m := hashField.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("trainer alone: %v\n%s", err, out)
	}
	return string(m[1])
}

// ran is the document of run --json, as far as it is looked at here.
type ran struct{ Jobs []ranJob }

type ranJob struct {
	ID, Attempts, Preemptions int
	Name, Status              string
}

// savedBefore reports whether an attempt before the last one saved: a job may be preempted before it has come so far.
func savedBefore(state string, d *ranJob) bool {
	for n := range d.Attempts - 1 {
		output, err := os.ReadFile(filepath.Join(state, "jobs", strconv.Itoa(d.ID), strconv.Itoa(n+1), "output.log"))
		if err == nil && bytes.Contains(output, []byte("TRAINYARD saved step=")) {
			return true
		}
	}
	return false
}

// wantTrained checks that every job of a state folder ended with the model of an undisturbed run, that those that had
// saved resumed from there, and returns how many preemptions there were.
func wantTrained(t *testing.T, state, document string, jobs []training) (preemptions int) {
	t.Helper()
	var doc ran
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		want := undisturbed(t, j.steps, j.gpus)
		for i := range doc.Jobs {
			d := &doc.Jobs[i]
			if !strings.HasPrefix(d.Name, j.name+"-") {
				continue
			}
			path := filepath.Join(state, "jobs", strconv.Itoa(d.ID), strconv.Itoa(d.Attempts), "output.log")
			output, err := os.ReadFile(path)
			m := hashField.FindSubmatch(output)
			switch {
			case err != nil || m == nil || d.Status != "finished":
				t.Errorf("%s: %s, %v\n%s", d.Name, d.Status, err, output)
			case string(m[1]) != want:
				t.Errorf("%s: hash %s after %d attempts, want %s", d.Name, m[1], d.Attempts, want)
			case savedBefore(state, d) && !bytes.Contains(output, []byte("trainer: resumed at step ")):
				t.Errorf("%s: preempted %d times, and the last attempt started again\n%s", d.Name, d.Preemptions,
					output)
			}
			preemptions += d.Preemptions
		}
	}
	return preemptions
}

// wantReplay checks that a log replays, also by systems that know only what the last one saved, and that a decision
// that was tampered with is found and shown.
func wantReplay(t *testing.T, log string) {
	t.Helper()
	for _, flags := range [][]string{nil, {"--reload"}} {
		if out, _ := trainyard(t, term.ExitOK, append([]string{"replay", log}, flags...)...); !strings.Contains(out,
			"every decision of ") {
			t.Errorf("replay %v says %q", flags, out)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	at := 0
	for i, line := range lines {
		if strings.Contains(line, `"event":"decided"`) {
			at = i
		}
	}
	was := lines[at]
	lines[at] = strings.Replace(was, `"gpus":[`, `"gpus":[9,`, 1)
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, said := trainyard(t, term.ExitGeneral, "replay", bad)
	if !strings.Contains(said, fmt.Sprintf("seq %d", at)) ||
		!strings.Contains(said, "replayed: "+strings.TrimSpace(was)) {
		t.Errorf("line %d was tampered with, replay says %s", at+1, said)
	}
}

// Ensure that ten jobs which train for real are preempted for one another under Tiresias, lose nothing of their work by
// it, and leave a log from which every decision can be taken again.
func TestTenJobs(t *testing.T) {
	t.Parallel()
	path := jobFile(t, tenJobs)
	dir := filepath.Dir(path)
	state, log := filepath.Join(dir, "jobs.state"), filepath.Join(dir, "log.jsonl")
	args := []string{"run", path, "--slots", "4", "--set", "*.min_run=0", "--set", "*.thresholds=0.8"}
	table, followed := trainyard(t, term.ExitOK, append(args, "--events-out", log)...)
	t.Log("\n" + table)
	for _, want := range []string{"job", "name", "JCT", "10 of 10 jobs finished under tiresias-las: average JCT ",
		"slots held"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table misses %q", want)
		}
	}
	for _, want := range []string{"is asked to stop: preempted", "preempted with exit code 75 (saved (step ",
		"attempt 2 runs on slot"} {
		if !strings.Contains(followed, want) {
			t.Errorf("nothing said of %q:\n%s", want, followed)
		}
	}
	again, _ := trainyard(t, term.ExitOK, args...)
	if again != table {
		t.Errorf("run once more, it says otherwise:\n%s", again)
	}
	document, _ := trainyard(t, term.ExitOK, append(args, "--json", "--quiet")...)
	if n := wantTrained(t, state, document, tenJobs); n == 0 {
		t.Error("no one was preempted")
	}
	wantReplay(t, log)
}

// Ensure that what other systems decided about real jobs can be decided again as well.
func TestPromise12ReplayOfRealJobs(t *testing.T) {
	jobs := []training{{"long", 2, 80, "20ms", 2, 0, "800ms"}, {"wide", 4, 20, "40ms", 1, 300, "200ms"},
		{"short", 1, 20, "10ms", 3, 400, "200ms"}}
	for _, c := range []struct {
		system   string
		preempts bool
		set      []string
	}{
		{"fifo", false, nil},
		{"las", true, []string{"--set", "las.quantum=0.1"}},
		{"srtf", true, nil},
		{"fifo-easy", false, nil},
	} {
		t.Run(c.system, func(t *testing.T) {
			t.Parallel()
			path := jobFile(t, jobs)
			log := filepath.Join(filepath.Dir(path), "log.jsonl")
			args := append([]string{"run", path, "--slots", "4", "--system", c.system, "--set", "*.min_run=0", "--json",
				"--quiet", "--events-out", log}, c.set...)
			document, _ := trainyard(t, term.ExitOK, args...)
			n := wantTrained(t, strings.TrimSuffix(path, ".yaml")+".state", document, jobs)
			if (n > 0) != c.preempts {
				t.Errorf("%d preemptions, want some: %v", n, c.preempts)
			}
			wantReplay(t, log)
		})
	}
}
