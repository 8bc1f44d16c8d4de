package shim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// gpuNode makes a node of a device that root and a group alone may open.
func gpuNode(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gpu0")
	if err := unix.Mknod(path, unix.S_IFCHR|0o660, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("no device can be made here: ", err)
	}
	return path
}

// taken takes a lock until the test ends.
func taken(t *testing.T, l *DeviceLock, together bool) (release func()) {
	t.Helper()
	files, err := l.Take(together)
	if err != nil {
		t.Fatal(err)
	}
	release = func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	t.Cleanup(release)
	return release
}

// Ensure that the lock of a device lies on its node: it outlives the folder of earlier releases and whatever another
// user makes of that, excludes all but those who share it, and its holder is named.
func TestDeviceLock(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "gpus")
	l := &DeviceLock{Name: "GPU-1", Node: gpuNode(t), Folder: folder, Shared: true}
	release := taken(t, l, false)
	if err := os.RemoveAll(folder); err != nil { // as cleaners do
		t.Fatal(err)
	}
	want := fmt.Sprintf("device GPU-1 is in use by process %d (", os.Getpid())
	if _, err := l.Take(false); !errors.Is(err, ErrHeld) || !strings.HasPrefix(err.Error(), want) ||
		!strings.Contains(err.Error(), ") of ") {
		t.Errorf("%v, want %q", err, want)
	}
	release()
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil { // it is no folder of all
		t.Fatal(err)
	}
	release = taken(t, l, true)
	both := taken(t, l, true)
	if _, err := l.Take(false); !errors.Is(err, ErrHeld) {
		t.Errorf("next to those who share it: %v", err)
	}
	release()
	both()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	release = taken(t, &DeviceLock{Name: "GPU-1", Folder: folder, Shared: true}, false) // of an earlier release
	if _, err := l.Take(false); !errors.Is(err, ErrHeld) {
		t.Errorf("next to an earlier release: %v", err)
	}
	release()
	taken(t, l, false)
}

// Ensure that parts of a device exclude themselves and not each other.
func TestPartLock(t *testing.T) {
	at := gpuNode(t)
	part := func(name string) *DeviceLock {
		return &DeviceLock{Name: name, Node: at, Part: true, Folder: filepath.Join(t.TempDir(), "x"), Shared: true}
	}
	release := taken(t, part("MIG-1"), false)
	taken(t, part("MIG-2"), false)
	if _, err := part("MIG-1").Take(true); !errors.Is(err, ErrHeld) {
		t.Errorf("twice: %v", err)
	}
	release()
	taken(t, part("MIG-1"), false)
}

// Ensure that who may not open a device cannot hold its lock.
func TestStrangerHoldsNothing(t *testing.T) {
	at := gpuNode(t)
	for dir := filepath.Dir(at); dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	l := &DeviceLock{Name: "GPU-1", Node: at, Folder: filepath.Join(t.TempDir(), "gpus"), Shared: true}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, which is another user alone, ends here
		const id = 12345
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, id, id, id); errno != 0 {
			done <- errno
			return
		}
		_, err := l.Take(false)
		done <- err
	}()
	if err := <-done; !errors.Is(err, os.ErrPermission) {
		t.Errorf("another user: %v", err)
	}
	taken(t, l, false)
}
