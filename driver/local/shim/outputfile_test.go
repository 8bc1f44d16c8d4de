package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// text is what a file holds.
func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ensure that attempts append to a file of their user, or start it empty, that each keeps its own part for logs, what
// its children write after it has ended included, and that errors go where they are asked to.
func TestOutputFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	state, mine := State(filepath.Join(folder, "state")), filepath.Join(folder, "mine")
	if err := os.WriteFile(mine, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(attempt int32, script string, to UserOutput) string {
		o := sh(state, script)
		o.Attempt, o.Output = attempt, &to
		p := begin(t, o)
		if over := p.over(); over.Code != 0 {
			t.Fatalf("%+v", over)
		}
		return text(t, p.dir.Output())
	}
	got := run(1, "echo one; (trap '' TERM; sleep 0.3; echo late) & sleep 0.1", UserOutput{File: mine})
	if got != "one\n" && got != "one\nlate\n" {
		t.Errorf("kept %q", got)
	}
	before := text(t, mine)
	if !strings.HasPrefix(before, "before\none\n") {
		t.Errorf("wrote %q", before)
	}
	if got = run(2, "echo two", UserOutput{File: mine}); got != "two\n" || text(t, mine) != before+"two\n" {
		t.Errorf("kept %q of %q", got, text(t, mine))
	}
	other := filepath.Join(folder, "errors")
	got = run(3, "echo out; echo err >&2", UserOutput{File: mine, Error: other, Truncate: true})
	if text(t, mine) != "out\n" || text(t, other) != "err\n" || !strings.Contains(got, "out\n") ||
		!strings.Contains(got, "err\n") {
		t.Errorf("wrote %q and %q, kept %q", text(t, mine), text(t, other), got)
	}
	if got = run(4, ": > "+mine+"; echo x", UserOutput{File: mine}); got != "x\n" {
		t.Errorf("a job that empties its file: kept %q", got)
	}
	if got = run(5, "echo gone", UserOutput{File: os.DevNull}); got != "" {
		t.Errorf("kept %q", got)
	}
	o := sh(state, "echo never")
	o.Attempt, o.Output = 6, &UserOutput{File: filepath.Join(folder, "none", "x")}
	if over := begin(t, o).over(); over.Code != 126 || !strings.Contains(over.Text, "none is not there") {
		t.Errorf("%+v", over)
	}
}

// Ensure that a word that a job wrote before it was asked to end is no answer, though it is copied from its own file.
func TestOutputFileReady(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	o := sh(State(filepath.Join(folder, "state")), `trap 'sleep 0.2; exit 0' TERM; echo TRAINYARD ready; echo up
		while :; do sleep 0.02; done`)
	o.Output = &UserOutput{File: filepath.Join(folder, "mine")}
	p := begin(t, o)
	conn := p.dial(1)
	for wrote := ""; !strings.Contains(wrote, "up"); time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(o.Output.File)
		if wrote = string(data); err != nil && !errors.Is(err, os.ErrNotExist) { // it is made as the job starts
			t.Fatal(err)
		}
	}
	if err := conn.Stop(); err != nil {
		t.Fatal(err)
	}
	if over := p.over(); !over.Ready.IsZero() || over.Code != 0 {
		t.Errorf("%+v", over)
	}
}

// Ensure that a folder that is made only after the start, as by a submitter that needs the number, is waited for.
func TestOutputFolderMadeLate(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "12")
	made := make(chan error)
	go func() {
		time.Sleep(3 * folderLook)
		made <- os.Mkdir(folder, 0o700)
	}()
	var all outputs
	to := UserOutput{File: filepath.Join(folder, "12_log.out")}
	err := to.await(nil)
	f, failed := all.add(to.File, false)
	if err = errors.Join(err, failed, <-made); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
}

// Ensure that a stop is obeyed while folders of the output are waited for.
func TestStopBeforeOutput(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	o := sh(State(filepath.Join(folder, "state")), "echo never")
	o.Output = &UserOutput{File: filepath.Join(folder, "none", "x"), Error: filepath.Join(folder, "neither", "x")}
	p := begin(t, o)
	if err := p.dial(1).Stop(); err != nil {
		t.Fatal(err)
	}
	if over := p.over(); !over.Stopped || over.Code == 0 || over.Text != errStopped.Error() || over.Failed != "" {
		t.Errorf("%+v", over)
	}
}

// Ensure that folders that are not there, files that are none, and links of others are refused by name.
func TestCheckOutput(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for link, to := range map[string]string{"own": folder, "round": at("round"), "dangling": at("new")} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(at("pipe"), 0o600), os.WriteFile(at("file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("none/x"): "none is not there, want one that is", at("none/%j/x"): "none is not there",
		folder:     "want a file",
		at("pipe"): "want a file", at("file/x"): "no folder", at("round/x"): "too many", "/dev/zero": "want a file",
		at("file/%j"): "no folder", at("dangling"): "is a link to a file that is not there",
	} {
		if err := CheckOutput(path); !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	for _, path := range []string{at("x"), at("file"), at("own/file"), at("own/%j"), at("%j/x"), os.DevNull} {
		if err := CheckOutput(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{at("own/file"), at("own")} {
		if err := checkLinks(path, os.Getuid()+1); os.Getuid() != 0 && !errors.Is(err, ErrOutput) {
			t.Errorf("%s through a link of another user: %v", path, err)
		}
	}
	if f, err := openOutput(at("dangling"), false); !errors.Is(err, ErrOutput) {
		t.Errorf("a link to nothing was followed: %v, %v", f, err)
	}
}
