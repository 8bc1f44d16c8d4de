package shim

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"
)

// connect connects to the terminal once it is there.
func (p *process) connect() *Attached {
	p.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		a, err := Attach(p.dir)
		if err == nil {
			p.Cleanup(func() { _ = a.Close() })
			return a
		}
		early := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		if !early || time.Now().After(deadline) {
			p.Fatal(err)
		}
	}
}

// answers types a line, reads until a word was shown, and reports whether it was. ErrFull is no failure.
func (p *process) answers(a *Attached, line, want string) bool {
	p.Helper()
	_ = a.Type([]byte(line)) // refused where it is one too many
	_ = a.SetReadDeadline(time.Now().Add(patience))
	shown, b := "", make([]byte, 1<<10)
	for {
		n, err := a.Read(b)
		if shown += string(b[:n]); strings.Contains(shown, want) {
			return true
		}
		if errors.Is(err, ErrFull) {
			return false
		}
		if err != nil {
			p.Fatalf("shown %q, then %v, want %q", shown, err, want)
		}
	}
}

// Ensure that the terminal of a job that writes nothing takes MostAttached connections and refuses more by name, and
// that the place of one that left is free.
func TestTerminalPlaces(t *testing.T) {
	t.Parallel()
	o := sh(State(t.TempDir()), "stty -echo; echo up; while read x; do echo got $x; done")
	o.Terminal = time.Hour
	p := begin(t, o)
	var open []*Attached
	for len(open) < MostAttached {
		a := p.connect()
		if !p.answers(a, "", "up") {
			t.Fatalf("%d are attached, and it is full", len(open))
		}
		open = append(open, a)
	}
	if p.answers(p.connect(), "", "up") {
		t.Errorf("%d are attached, want one refused", len(open)+1)
	}
	for _, a := range open {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); !p.answers(p.connect(), "x1\n", "got x1"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("all have left, and it is full")
		}
	}
}
