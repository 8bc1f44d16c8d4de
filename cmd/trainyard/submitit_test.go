package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that what submitit asks of Slurm works by links: jobs, arrays and errors come back, and a job that requeues
// itself, while it is asked to save or warned of its end, goes on in a second attempt with no failure counted.
func TestSubmititsCalls(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		t.Skip("no Python: ", err)
	}
	play, err := filepath.Abs("testdata/submitit.py")
	if err != nil {
		t.Fatal(err)
	}
	r := startServing(t, "--slots", "4")
	links, folder := t.TempDir(), t.TempDir()
	_, _ = trainyard(t, term.ExitOK, "slurm-links", "--force", links)
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", play, folder)
	cmd.Env = append(os.Environ(), client.StateVariable+"="+r.state(),
		"PATH="+strings.Join([]string{links, programs, os.Getenv("PATH")}, string(filepath.ListSeparator)))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		logs, _ := filepath.Glob(filepath.Join(folder, "*_log.err"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			out = append(out, path+": "+string(text)+"\n"...)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for _, job := range []string{"7", "8"} {
		document, _ := trainyard(t, term.ExitOK, "ps", "--all", "-o", "jsonl", "--state", r.state())
		for line := range strings.Lines(document) {
			if strings.Contains(line, `"id":`+job+",") && (!strings.Contains(line, `"attempt":2,`) ||
				strings.Contains(line, `"failure"`)) {
				t.Errorf("%s, want two attempts and no failure", line)
			}
		}
	}
}
