package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// programs is a folder with the programs trainyard and trainer. Jobs that run are tested with the real ones: their
// shims are processes of their own.
var programs string

// withPrograms builds the programs before the tests.
type withPrograms struct{ *testing.M }

func (m withPrograms) Run() int {
	dir, err := os.MkdirTemp("", "trainyard")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "build", "-o", dir, ".", "../../examples/trainer").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	programs = dir
	if err := writeByContext(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// No test may find, or be found by, the manager of who runs it.
	if err := os.Setenv(client.StateVariable, filepath.Join(dir, "none.state")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")); err != nil { // nor by a context of theirs
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

// endJobs ends what still runs in the state folders in dir, as a later manager would.
func endJobs(dir string) error {
	const later = 1 << 40
	orders, err := filepath.Glob(filepath.Join(dir, "*.state", "jobs", "*", "*", "order.json"))
	if err != nil {
		return err
	}
	for _, order := range orders {
		run := filepath.Dir(order)
		if err := shim.State(filepath.Dir(filepath.Dir(filepath.Dir(run)))).SetEpoch(later); err != nil {
			return err
		}
		conn, err := shim.Dial(shim.RunDir(run), later)
		if err != nil {
			continue // it has ended
		}
		_ = conn.Stop()
		_ = conn.Watch(func(*shim.Alive) {})
		_ = conn.Close()
	}
	return nil
}

// byContext is the program, with a context named to verbs that take one and are given no folder.
const byContext = `#!/bin/sh
case "$1" in
ps|top|logs|why|explain|wait|cancel|pause|resume|requeue|resize|events|nodes|drain|undrain|submit|sbatch)
	case " $* " in *" --state"*|*" --help"*) exec PROGRAM "$@";; esac
	verb=$1; shift
	exec PROGRAM "$verb" --context there "$@";;
esac
exec PROGRAM "$@"
`

// byContextFolder is the folder, next to the programs, of byContext.
const byContextFolder = "bycontext"

// writeByContext writes byContext before anything runs: a process that is forked while it is written would keep it from
// being started.
func writeByContext(dir string) error {
	bin := filepath.Join(dir, byContextFolder)
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	text := strings.ReplaceAll(byContext, "PROGRAM", filepath.Join(dir, "trainyard"))
	return os.WriteFile(filepath.Join(bin, "trainyard"), []byte(text), 0o700)
}
