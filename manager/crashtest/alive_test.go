package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// patience is how long a manager may take to find what is alive, on a machine that is busy.
const patience = time.Minute

// runner is a shim that was alive when a manager died.
type runner struct {
	dir   shim.RunDir
	alive shim.Alive
}

// runDirs are the run directories in a state folder.
func runDirs(t testing.TB, state shim.State) (dirs []shim.RunDir) {
	t.Helper()
	orders, err := filepath.Glob(filepath.Join(string(state), "jobs", "*", "*", "order.json"))
	if err != nil {
		t.Error(err)
	}
	for _, path := range orders {
		dirs = append(dirs, shim.RunDir(filepath.Dir(path)))
	}
	return dirs
}

// aliveNow returns the shims whose job runs at the moment, once they have noticed that their manager is gone.
func aliveNow(t *testing.T, state shim.State) (list []runner) {
	t.Helper()
	for _, dir := range runDirs(t, state) {
		alive, err := dir.Alive()
		if err != nil || !alive.Lives() || isOver(dir) {
			continue
		}
		for end := time.Now().Add(patience); sockets(alive.PID) > 1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the shim does not notice that its manager is gone", dir)
			}
		}
		list = append(list, runner{dir, *alive})
	}
	return list
}

func isOver(dir shim.RunDir) bool {
	_, err := dir.Over()
	return !errors.Is(err, fs.ErrNotExist)
}

// sockets counts the sockets of a process: of a shim, the one it listens on and one for each manager.
func sockets(pid int) (n int) {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return 0
	}
	unix, _ := os.ReadFile("/proc/net/unix")
	for _, link := range links {
		to, err := os.Readlink(link)
		inode, ok := strings.CutPrefix(to, "socket:[")
		if err == nil && ok && !abstract(string(unix), strings.TrimSuffix(inode, "]")) {
			n++
		}
	}
	return n
}

// abstract reports whether a list as in /proc/net/unix gives a socket a name that is no file, as leases of ports have.
func abstract(list, inode string) bool {
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 7 && f[6] == inode {
			return strings.HasPrefix(f[7], "@")
		}
	}
	return false
}

// adoption says how long it takes a manager to find all that was alive when the last one died; nothing if it dies
// before, or if there is nothing to be found.
func (c *campaign) adoption(l *life) <-chan time.Duration {
	took, alive := make(chan time.Duration, 1), c.alive
	go func() {
		defer close(took)
		for end := time.Now().Add(patience); len(alive) > 0 && time.Now().Before(end) &&
			!l.within(2*time.Millisecond); {
			if found(alive) {
				took <- time.Since(l.began)
				return
			}
		}
	}()
	return took
}

// found reports whether all runners have a manager, but for those that are over.
func found(list []runner) bool {
	for _, r := range list {
		if sockets(r.alive.PID) < 2 && !isOver(r.dir) {
			return false
		}
	}
	return true
}

// note keeps how long a manager took that was to find what is alive.
func (c *campaign) note(took time.Duration, ok bool) {
	switch {
	case ok:
		c.all.adopted = append(c.all.adopted, took)
	case len(c.alive) > 0:
		c.t.Errorf("a manager has not found %v within %v", c.alive, patience)
	}
}
