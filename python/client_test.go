//go:build !invariants

package python

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Ensure that the client submits each job once while the manager is killed and started again, follows, waits, and has
// an error of its own for what can go wrong.
func TestClient(t *testing.T) {
	if missing := lacking(); missing != "" {
		t.Skip(missing)
	}
	t.Parallel()
	binary, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	serve := func() *exec.Cmd {
		cmd := exec.Command(binary, "serve", "--state", state, "--slots", "2")
		if failed := cmd.Start(); failed != nil {
			t.Fatal(failed)
		}
		return cmd
	}
	manager := serve()
	ask := exec.CommandContext(t.Context(), interpreter, "-W", "error", "tests/ask.py", state, binary, "30")
	ask.Env = append(ask.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=src")
	var said bytes.Buffer
	ask.Stderr = &said
	in, inErr := ask.StdinPipe()
	out, outErr := ask.StdoutPipe()
	if failed := errors.Join(inErr, outErr, ask.Start()); failed != nil {
		t.Fatal(failed)
	}
	words := make(chan string)
	go func() {
		defer close(words)
		for s := bufio.NewScanner(out); s.Scan(); {
			words <- s.Text()
		}
	}()
	if word := <-words; word != "kill" {
		t.Errorf("%q, want kill", word)
	}
	kills, last := 0, ""
	for last == "" {
		select {
		case word, ok := <-words:
			if last = word; !ok {
				last = "nothing"
			}
		case <-time.After(300 * time.Millisecond):
			kills++
			_ = manager.Process.Kill()
			_ = manager.Wait()
			manager = serve()
		}
	}
	if _, err = in.Write([]byte("\n")); last == "leave" && err == nil {
		last = <-words
	}
	if failed := ask.Wait(); failed != nil || last != "well" {
		t.Errorf("after %d kills %q: %v\n%s", kills, last, failed, said.String())
	}
	t.Logf("%d kills", kills)
	if failed := errors.Join(manager.Process.Signal(os.Interrupt), manager.Wait()); failed != nil {
		t.Error(failed)
	}
}
