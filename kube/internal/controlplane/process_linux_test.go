package controlplane

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// pipeVar makes the test binary the parent in TestServersDieWithTheirParent.
const pipeVar = "CONTROLPLANE_TEST_PIPE"

// TestParent is no test: it is the parent in the test below, and starts a server whose log is a named pipe.
func TestParent(*testing.T) {
	pipe := os.Getenv(pipeVar)
	if pipe == "" {
		return
	}
	if _, err := spawn("/bin/sh", pipe, "-c", "echo up; exec sleep 3600"); err != nil {
		panic(err)
	}
	select {}
}

// Ensure that a server dies with a test binary that is killed: then no one holds the pipe any more.
func TestServersDieWithTheirParent(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestParent$")
	parent.Env = append(os.Environ(), pipeVar+"="+pipe)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	in := bufio.NewReader(reader)
	if line, readErr := in.ReadString('\n'); line != "up\n" {
		t.Fatalf("read %q, %v", line, readErr)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if rest, readErr := io.ReadAll(in); len(rest) > 0 || readErr != nil {
		t.Errorf("read %q, %v; want the end", rest, readErr)
	}
}
