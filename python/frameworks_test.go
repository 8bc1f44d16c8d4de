//go:build frameworks && !invariants

package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that frameworks whose sources are below the folder TRAINYARD_FRAMEWORKS, as they are there, run their jobs
// under a real manager: each has a program of ours that ends with "ok". What is not there is said not to be run.
func TestFrameworks(t *testing.T) {
	sources, err := filepath.Abs(os.Getenv("TRAINYARD_FRAMEWORKS"))
	if err != nil || os.Getenv("TRAINYARD_FRAMEWORKS") == "" {
		t.Fatal("no TRAINYARD_FRAMEWORKS, want the folder of the sources: make test-frameworks FRAMEWORKS=DIR")
	}
	ran := 0
	for name, program := range map[string]string{"submitit": "frameworks/run_submitit.py"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(sources, name)); err != nil {
				t.Skip("not run: ", err)
			}
			ran++
			play(t, sources, program)
		})
	}
	if ran == 0 {
		t.Error("not run: none of the frameworks is there")
	}
}

// play runs a program of a framework, with Slurm's commands in PATH.
func play(t *testing.T, sources, program string) {
	folder := t.TempDir()
	y := serves(t, folder, "--slots", "4")
	links := filepath.Join(folder, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	y.command("slurm-links", links)
	cmd := exec.CommandContext(t.Context(), interpreter, program, filepath.Join(folder, "files"))
	cmd.Env = append(os.Environ(), "TRAINYARD_STATE="+y.state, "PYTHONPATH="+sources, "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+strings.Join([]string{links, filepath.Dir(y.binary), os.Getenv("PATH")}, string(os.PathListSeparator)))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), ": ok\n") {
		t.Fatalf("%v\n%s%s", err, out, y.command("ps", "--all"))
	}
	t.Logf("%s", out)
}
