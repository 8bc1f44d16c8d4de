package shim

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Ensure that files are kept from others by either way, and are still open here.
func TestKeepFiles(t *testing.T) {
	for name, keep := range map[string]func(){"close_range": KeepFiles, "listed": keepListed} {
		file, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		fd := file.Fd()
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			t.Fatal(err)
		}
		keep()
		if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags != unix.FD_CLOEXEC {
			t.Errorf("%s: flags %#x, %v, want FD_CLOEXEC", name, flags, err)
		}
	}
}
