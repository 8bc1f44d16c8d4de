package freeze

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the frozen files instead of comparing with them")

// program is the path of the program under test, once TestMain has built it.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	if *rewrite && testing.Short() {
		fmt.Fprintln(os.Stderr, "-rewrite with -short would write a part of the rows, want one of them")
		return 2
	}
	dir, err := os.MkdirTemp("", "freeze")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "trainyard")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/trainyard").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := fields.write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// folder is where a program runs: its working directory, and all that it may know of its user.
type folder string

// command returns program with arguments, to run in the folder.
func (dir folder) command(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = string(dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + string(dir), "TMPDIR=" + os.TempDir(),
		"TZ=UTC", "LC_ALL=C", "NO_COLOR=1"}
	return cmd
}

// run runs the program under test and returns what it writes to stdout. It must succeed.
func (dir folder) run(t *testing.T, args ...string) []byte {
	t.Helper()
	out, code, stderr := dir.exit(t, program, args...)
	if code != 0 {
		t.Fatalf("trainyard %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return out
}

// exit runs any program and returns what it writes and its exit code.
func (dir folder) exit(t *testing.T, program string, args ...string) (stdout []byte, code int, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := dir.command(t, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return out.Bytes(), cmd.ProcessState.ExitCode(), errs.String()
}

// read returns a file of the folder.
func (dir folder) read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(string(dir), name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// inputs returns a new folder with all inputs in it: testdata/input, and testbed.csv of the examples.
func inputs(t *testing.T) folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/input")); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(dir, "testbed.csv"), "../../examples/testbed.csv")
	return folder(dir)
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// digest is the first half of the SHA-256 of b.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:16])
}
