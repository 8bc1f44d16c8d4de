package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ensure that a file that is opened again is added to, behind its last whole line.
func TestLogFile(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for has, want := range map[string]string{"": "", "a\n": "a\n", "a\nb": "a\n", "torn": "", "a\n" + long: "a\n",
		long + "\nb": long + "\n"} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(has), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("c\nd\n")); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want+"c\nd\n" {
			t.Errorf("after %.20q: %.20q, %v", has, got, err)
		}
	}
	if _, err := openLog(t.TempDir()); err == nil {
		t.Error("no error of a folder")
	}
}

// Ensure that a log may go down a pipe.
func TestLogPiped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("line\n")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(f, got); err != nil || string(got) != "line\n" {
		t.Errorf("%q, %v", got, err)
	}
}
