package shim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// untilAlive waits until the shim has nothing more to write before the end.
const untilAlive = "while [ ! -e RUN/alive.json ]; do sleep 0.01; done; "

// Ensure that the end of an attempt is reported whatever the job did to its folder.
func TestEndIsKept(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"removed":          `rm -r RUN`,
		"made again":       `rm -r RUN; mkdir RUN`,
		"state moved":      `mv STATE MOVED`,
		"hidden file gone": `rm RUN/.over.json`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s, moved := State(filepath.Join(root, "state")), State(filepath.Join(root, "moved"))
			script = strings.NewReplacer("RUN", string(s.RunDir(0, 1)), "STATE", string(s), "MOVED",
				string(moved)).Replace(untilAlive + script + " || exit 1; exit 7")
			p := begin(t, sh(s, script))
			if name == "state moved" {
				p.dir = moved.RunDir(0, 1)
			}
			if over := p.over(); over.Code != 7 || over.Ended.IsZero() {
				t.Errorf("%+v, want code 7", over)
			}
		})
	}
}

// smallDisk returns a folder on a disk of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("no right to mount: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Ensure that a disk that is full when the job ends does not cost its end: there is room, or else the shim waits for
// it, with the devices.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"room kept": "", "no room": "rm RUN/.over.json; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := State(smallDisk(t))
			fill := filepath.Join(string(s), "fill")
			script := strings.ReplaceAll(untilAlive+first, "RUN", string(s.RunDir(0, 1))) + "cat /dev/zero >" + fill +
				"; exit 7"
			p := begin(t, sh(s, script))
			if first != "" {
				p.waits(filepath.Join(string(s), "devices", "slot-0"))
				if err := os.Remove(fill); err != nil {
					t.Error(err)
				}
			}
			if over := p.over(); over.Code != 7 {
				t.Errorf("%+v, want code 7", over)
			}
		})
	}
}

// waits fails the test if the shim, whose job has ended, gives up or lets go of the lock.
func (p *process) waits(lock string) {
	p.Helper()
	time.Sleep(500 * time.Millisecond)
	if f, err := Lock(lock, false); !errors.Is(err, ErrHeld) {
		p.Errorf("%v, want ErrHeld", err)
		_ = f.Close()
	}
}

// Ensure that a write is tried again for what may pass, and for nothing else.
func TestPersist(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{syscall.ENOSPC: 3, syscall.EDQUOT: 3, syscall.EIO: 3, syscall.EACCES: 1,
		os.ErrNotExist: 1} {
		tries := 0
		got := persist(func() error {
			if tries++; tries == 3 {
				return nil
			}
			return &os.PathError{Op: "write", Path: "/x", Err: err}
		})
		if tries != want || (want == 1) != errors.Is(got, err) {
			t.Errorf("%v: %v after %d tries, want %d", err, got, tries, want)
		}
	}
}
