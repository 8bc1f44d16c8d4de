package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ensure that an old socket which cannot be removed is reported by its path, with the cause.
func TestOldSocketStays(t *testing.T) {
	r := newRig(t, 1, nil)
	socket, kept := filepath.Join(r.dir, "control"), filepath.Join(r.dir, "kept")
	stuck := filepath.Join(socket, "stuck") // which keeps root as well from removing it
	if err := errors.Join(os.Rename(socket, kept), os.MkdirAll(stuck, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, err := r.door.Listen(r.server)
	if err == nil || !errors.Is(err, syscall.ENOTEMPTY) || !strings.Contains(err.Error(),
		"api: control socket: "+socket+": ") || strings.Contains(err.Error(), "/proc/") {
		t.Errorf("got %v, want %s and that it is not empty", err, socket)
	}
	if err := errors.Join(os.RemoveAll(socket), os.Rename(kept, socket)); err != nil {
		t.Fatal(err)
	}
}
