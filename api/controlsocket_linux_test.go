package api

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Ensure that a client says nothing to who listens in a folder without owning it, unless that is root, and names him.
func TestOnlyTheOwnerListens(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be other users")
	}
	const ann, bob = 12345, 12346
	for _, c := range []struct {
		owner, listens int
		ok             bool
	}{{0, ann, false}, {ann, bob, false}, {ann, ann, true}, {ann, 0, true}} {
		dir := t.TempDir()
		if err := errors.Join(os.Chown(dir, c.owner, -1), os.Chmod(dir, 0o777),
			os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		l := listenAs(t, c.listens, filepath.Join(dir, "control"))
		heard := make(chan string, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 4096)
			n, _ := conn.Read(b)
			heard <- string(b[:n])
			_ = conn.Close()
		}()
		client, err := Dial(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Submit(t.Context(), Submission{Env: map[string]string{"KEY": "secret"}})
		said := <-heard
		if c.ok && (said == "" || errors.Is(err, ErrForbidden)) {
			t.Errorf("%+v: heard %q, %v", c, said, err)
		}
		if !c.ok && (said != "" || !errors.Is(err, ErrForbidden) ||
			!strings.Contains(err.Error(), "listens on its socket")) {
			t.Errorf("%+v: heard %q, %v", c, said, err)
		}
		_ = errors.Join(client.Close(), l.Close())
	}
}

// listenAs listens on a unix socket as another user.
func listenAs(t *testing.T, uid int, path string) net.Listener {
	t.Helper()
	type answer struct {
		l   net.Listener
		err error
	}
	done := make(chan answer)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, which is another user alone, ends here
		id := uintptr(uid)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, id, id, id); errno != 0 {
			done <- answer{err: errno}
			return
		}
		l, err := net.Listen("unix", path)
		done <- answer{l, err}
	}()
	a := <-done
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.l
}
