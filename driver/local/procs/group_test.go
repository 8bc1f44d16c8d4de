//go:build linux

package procs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mode is one of the two ways to hold a group.
type mode struct {
	name string
	root string
}

// modes returns both, or only the second on a machine where the caller may make no cgroups.
func modes(t *testing.T) []mode {
	t.Helper()
	list := []mode{{"tree", ""}}
	if root := Root(); root != "" {
		list = append(list, mode{"cgroup", root})
	} else {
		t.Log("no cgroup v2 to make groups in: only the look at /proc is tested")
	}
	return list
}

// eachMode runs a test in both ways, with a fresh group, and checks afterwards that nothing of it is left.
func eachMode(t *testing.T, test func(t *testing.T, g *Group, marker string)) {
	if err := Subreap(); err != nil {
		t.Fatal(err)
	}
	for _, m := range modes(t) {
		t.Run(m.name, func(t *testing.T) {
			marker := newMarker()
			g, err := New(m.root, "trainyard-test-"+marker, "PROCS_TEST="+marker)
			if err != nil {
				t.Fatal(err)
			}
			defer cleanUp(t, g, marker)
			test(t, g, marker)
		})
	}
}

// cleanUp kills what the test left, and fails if Kill leaves anything.
func cleanUp(t *testing.T, g *Group, marker string) {
	t.Helper()
	defer reap()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := g.Kill(ctx); err != nil {
		t.Error(err)
	}
	if pids, err := g.Members(); err != nil || len(pids) > 0 {
		t.Errorf("members after Kill: %v, error %v", pids, err)
	}
	left := survivors(t, marker)
	time.Sleep(20 * time.Millisecond)
	left = append(left, survivors(t, marker)...)
	for _, pid := range left {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if len(left) > 0 {
		t.Errorf("survivors after Kill: %v", left)
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(g.dir); g.dir != "" && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s after Close: %v", g.dir, err)
	}
}

// reap takes the exit status of all dead children.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// reapAlways reaps as a subreaper must, until the test is over. No exit status reaches exec.Cmd then.
func reapAlways(t *testing.T) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			reap()
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// await waits until the condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

func awaitSurvivors(t *testing.T, marker string, want int) {
	t.Helper()
	await(t, fmt.Sprintf("%d processes", want), func() bool { return len(survivors(t, marker)) >= want })
}

func start(t *testing.T, g *Group, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stderr = os.Stderr
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
}

// Ensure that Kill leaves nothing of any animal of the zoo, and that Members finds those that hold still.
func TestKillZoo(t *testing.T) {
	const moving = true
	for _, animal := range []struct {
		name, kind, arg string
		processes       int // to wait for
		moving          bool
	}{
		{"child", "nap", "", 1, false},
		{"setsid", "setsid", "", 2, false},
		{"double fork", "orphan", "", 1, false},
		{"double fork without environment", "naked", "", 1, false},
		{"ignores signals", "deaf", "", 2, false},
		{"stopped", "stopped", "", 2, false},
		{"threads", "threads", "", 1, false},
		{"first thread ended", "headless", "", 1, false},
		{"fork bomb, gone off", "exec", bomb, 200, false},
		{"fork bomb, going off", "exec", bomb, 10, moving},
		{"pair that starts each other again", "keeper", "", 2, moving},
	} {
		t.Run(animal.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, g *Group, marker string) {
				reapAlways(t)
				start(t, g, zoo(animal.kind, marker, animal.arg))
				awaitSurvivors(t, marker, animal.processes)
				if animal.moving {
					return
				}
				await(t, "the group to hold still", func() bool {
					want := survivors(t, marker)
					got, err := g.Members()
					if err != nil {
						t.Fatal(err)
					}
					return len(got) >= animal.processes && slices.Equal(got, want)
				})
			})
		})
	}
}

// Ensure that a process is killed that at every look has another pid. Looking for its marker would prove nothing, so it
// holds a pipe, which ends with it.
func TestKillComet(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		reapAlways(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		cmd := zoo("comet", marker)
		cmd.ExtraFiles = []*os.File{w}
		start(t, g, cmd)
		w.Close()
		awaitDead(t, cmd.Process.Pid)
		begun := time.Now()
		if err := g.Kill(context.Background()); err != nil {
			t.Error(err)
		}
		t.Logf("killed in %v", time.Since(begun))
		if err := r.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("alive after Kill: read: %v, want EOF", err)
		}
	})
}

// Ensure that cgroups made by the job are killed, also frozen, and removed.
func TestKillNestedCgroups(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		if g.dir == "" {
			return // the job has no cgroup of its own to make others in
		}
		start(t, g, zoo("nested", marker, g.dir))
		awaitSurvivors(t, marker, 3)
		await(t, "a frozen cgroup", func() bool {
			events, _ := os.ReadFile(filepath.Join(g.dir, "outer/inner/cgroup.events"))
			return strings.Contains(string(events), "frozen 1")
		})
		if pids, err := g.Members(); err != nil || len(pids) != 3 {
			t.Errorf("members %v, error %v, want 3", pids, err)
		}
		if err := g.Close(); !errors.Is(err, syscall.EBUSY) {
			t.Errorf("Close with live members: error %v, want EBUSY", err)
		}
	})
}

// Ensure that a process that moves out of the cgroup is found by its cookie, and its child by descent.
func TestKillEscapee(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		if g.dir == "" {
			return
		}
		start(t, g, zoo("escapee", marker, filepath.Dir(g.dir)))
		awaitSurvivors(t, marker, 2)
		if pids, err := pidsIn(g.dir); err != nil || len(pids) > 0 {
			t.Errorf("in the cgroup: %v, error %v, want none", pids, err)
		}
	})
}

// Ensure that a kernel without cgroup.kill is good enough.
func TestKillWithoutKillFile(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		reapAlways(t)
		g.killFile += "-is-not-there"
		start(t, g, zoo("exec", marker, bomb))
		start(t, g, zoo("comet", marker))
		start(t, g, zoo("keeper", marker))
		start(t, g, zoo("naked", marker))
		awaitSurvivors(t, marker, 10)
	})
}

// Ensure that a dead child that no one reaps is no member, and that a group which never had one is killed at once.
func TestKillIgnoresZombies(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		cmd := bash("true", marker)
		start(t, g, cmd)
		awaitDead(t, cmd.Process.Pid)
		if pids, err := g.Members(); err != nil || len(pids) > 0 {
			t.Errorf("members %v, error %v, want none", pids, err)
		}
		if err := g.Kill(context.Background()); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("exit status after Kill: %v, want 0", err)
		}
	})
}

func awaitDead(t *testing.T, pid int) {
	t.Helper()
	await(t, "a dead child", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// Ensure that a signal passes wrappers and reaches the stopped.
func TestSignalReachesGrandchildren(t *testing.T) {
	for _, c := range []struct {
		name, stop string
		sig        syscall.Signal
	}{
		{"SIGTERM", "", syscall.SIGTERM},
		{"SIGTERM while stopped", " stop", syscall.SIGTERM},
		{"SIGUSR1", "", syscall.SIGUSR1},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachMode(t, func(t *testing.T, g *Group, marker string) {
				file := filepath.Join(t.TempDir(), "heard")
				child := zoo("listener", marker, file+c.stop)
				line := "'" + strings.Join(child.Args, "' '") + "'"
				inner := `trap : USR1; ` + line + ` & wait; wait; sleep $1`
				start(t, g, bash(`trap : USR1; bash -c "`+inner+`" bash $1; sleep $1`, marker))
				reads := func(want string) func() bool {
					return func() bool {
						got, _ := os.ReadFile(file)
						return string(got) == want && (c.stop == "" || want != "ready" || anyStopped(t, marker))
					}
				}
				await(t, "the listener", reads("ready"))
				if err := g.Signal(c.sig); err != nil {
					t.Fatal(err)
				}
				await(t, "the signal", reads(c.sig.String()))
			})
		})
	}
}

func anyStopped(t *testing.T, marker string) bool {
	for _, pid := range survivors(t, marker) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if strings.Contains(string(stat), ") T ") {
			return true
		}
	}
	return false
}

// Ensure that the group of a maker that was killed is found and killed by another process. Without a cgroup that is all
// but "naked".
func TestOpenAfterMakerDied(t *testing.T) {
	for _, m := range modes(t) {
		t.Run(m.name, func(t *testing.T) {
			reapAlways(t)
			marker := newMarker()
			name, cookie := "trainyard-test-"+marker, "PROCS_TEST="+marker
			kinds := []string{"setsid", "orphan", "deaf", "stopped", "keeper", "headless"}
			if m.root != "" {
				kinds = append(kinds, "naked")
			}
			owner := zoo("shim", marker, name, cookie, strings.Join(kinds, ","), m.root)
			owner.Stderr = os.Stderr
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			g := Open(m.root, name, cookie)
			defer cleanUp(t, g, marker)
			awaitSurvivors(t, marker, 1+2+1+2+2+2+len(kinds)-5)
			if err := owner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			await(t, "the shim to end", func() bool {
				return !slices.Contains(survivors(t, marker), owner.Process.Pid)
			})
		})
	}
}

// Ensure that Kill touches no process but members: neither those of another group nor those of none.
func TestKillSparesOthers(t *testing.T) {
	for _, m := range modes(t) {
		t.Run(m.name, func(t *testing.T) {
			marker := newMarker()
			other := zoo("nap", marker)
			other.Env = append(os.Environ(), "PROCS_TEST="+marker+"0", "PROCS_TESTS="+marker, "X=PROCS_TEST="+marker)
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			awaitSurvivors(t, marker, 1)
			g := Open(m.root, "trainyard-test-"+marker, "PROCS_TEST="+marker)
			if err := errors.Join(g.Signal(syscall.SIGTERM), g.Kill(context.Background()), g.Close()); err != nil {
				t.Error(err)
			}
			if left := survivors(t, marker); !slices.Equal(left, []int{other.Process.Pid}) {
				t.Errorf("alive: %v, want %d", left, other.Process.Pid)
			}
			if err := other.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = other.Wait()
		})
	}
}

// Ensure that the error of Kill names who is left, and that Kill kills even when its time is over already.
func TestKillNamesThePidsLeft(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		cmd := zoo("nap", marker)
		start(t, g, cmd)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		err := g.unfinished(ctx, nil)
		want := fmt.Sprintf("procs: kill group %s: context canceled, pids left [%d]", g.name, cmd.Process.Pid)
		if !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		if err := g.Kill(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		awaitDead(t, cmd.Process.Pid)
	})
}

// Ensure that Kill does not kill the caller with its cgroup.
func TestKillRefusesTheCallersOwnCgroup(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, _ string) {
		if g.dir == "" {
			return
		}
		move := func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
				t.Error(err)
			}
		}
		move(g.dir)
		defer move(filepath.Dir(g.dir))
		if err := g.Kill(context.Background()); err == nil || !strings.Contains(err.Error(), "the caller is a member") {
			t.Errorf("error %v, want a refusal", err)
		}
		if pids, err := g.Members(); err != nil || len(pids) > 0 {
			t.Errorf("members %v, error %v, want none: the caller is never one", pids, err)
		}
	})
}

// Ensure that a group is made once, with a name that is a directory's and a cookie that is a variable's.
func TestNewRefuses(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, _ string) {
		if g.dir == "" {
			return
		}
		if _, err := New(filepath.Dir(g.dir), g.name, g.cookie); !errors.Is(err, fs.ErrExist) {
			t.Errorf("second New: error %v, want ErrExist", err)
		}
	})
	for _, c := range [][2]string{{"", "A=b"}, {"..", "A=b"}, {"a/b", "A=b"}, {"a", ""}, {"a", "A"}, {"a", "=b"}} {
		if _, err := New("", c[0], c[1]); err == nil {
			t.Errorf("New(%q, %q): no error", c[0], c[1])
		}
	}
	if pids, err := Open(t.TempDir(), "../..", "").Members(); err != nil || len(pids) > 0 {
		t.Errorf("a group with no proper name: members %v, error %v, want none", pids, err)
	}
}

// Ensure that Start keeps what the caller asked for, and hands over the cookie and a session.
func TestStart(t *testing.T) {
	eachMode(t, func(t *testing.T, g *Group, marker string) {
		file := filepath.Join(t.TempDir(), "out")
		cmd := bash(`echo "$PROCS_TEST $KEPT $(ps -o sid= -p $$) $$" >`+file, marker)
		cmd.Env = append(os.Environ(), "KEPT=yes", "PROCS_TEST=overridden")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Noctty: false}
		start(t, g, cmd)
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		want := fmt.Sprintf("%s yes %d %[2]d", marker, cmd.Process.Pid)
		if err != nil || strings.Join(strings.Fields(string(got)), " ") != want {
			t.Errorf("got %q, error %v, want %q", got, err, want)
		}
		if err := g.Start(exec.Command(filepath.Join(t.TempDir(), "absent"))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no such command: error %v, want ErrNotExist", err)
		}
	})
}
