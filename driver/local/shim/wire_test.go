package shim

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// faulty is a listener that fails for a while.
type faulty struct {
	net.Listener
	left int
}

func (f *faulty) Accept() (net.Conn, error) {
	if f.left--; f.left >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

// Ensure that a shim that was short of files hears managers again afterwards.
func TestAcceptGoesOn(t *testing.T) {
	t.Parallel()
	state := State(t.TempDir())
	dir := state.RunDir(0, 1)
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &shim{order: sh(state, ""), dir: dir, changed: make(chan struct{}), stop: make(chan struct{})}
	l, err := net.Listen("unix", filepath.Join(string(dir), "control"))
	if err != nil {
		t.Fatal(err)
	}
	s.listener = &faulty{l, 3}
	done := make(chan struct{})
	go func() { s.accept(); close(done) }()
	conn, err := Dial(dir, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []<-chan struct{}{s.stop, done} {
		select {
		case <-c:
		case <-time.After(patience):
			t.Fatal("the shim is deaf")
		}
		_ = l.Close()
	}
}

// Ensure that however many connect, a shim has files left, and obeys its manager.
func TestCrowd(t *testing.T) {
	t.Parallel()
	p := begin(t, sh(State(t.TempDir()), "exec sleep 300"))
	manager := p.dial(1)
	up := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- manager.Watch(func(*Alive) { close(up) }) }()
	<-up
	address, held, err := p.dir.socket()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for range 3 * maxClients {
		conn, err := net.Dial("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if n := sockets(t, p.cmd.Process.Pid); n == maxClients+1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%d sockets, want %d clients", n, maxClients)
		}
	}
	if err := manager.Stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("%v, want the end of the attempt", err)
	}
	if over := p.over(); !over.Stopped {
		t.Errorf("%+v", over)
	}
}

// sockets counts those of a process.
func sockets(t *testing.T, pid int) (n int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// Ensure that of managers the one that was silent for longest has to go, and only once no strangers are left.
func TestWhoGoes(t *testing.T) {
	t.Parallel()
	s := new(shim)
	var all []*client
	for range maxClients {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		all = append(all, &client{Conn: ours})
		s.admit(all[len(all)-1])
	}
	for _, c := range all[1:] {
		s.heard(c)
	}
	s.heard(all[1])
	for _, want := range []*client{all[0], all[2], all[3]} {
		c := &client{Conn: all[0].Conn}
		s.admit(c)
		s.heard(c)
		_ = want.SetDeadline(time.Now())
		if _, err := want.Write(nil); !errors.Is(err, io.ErrClosedPipe) || len(s.open) != maxClients {
			t.Errorf("%v, %d clients: the wrong one had to go", err, len(s.open))
		}
	}
}
