//go:build linux

package procs

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The zoo: processes that are hard to kill. The test binary is the zoo's program too:
//
//	procs.test procs-zoo KIND MARKER [ARGUMENT]
//
// The kind is an argument and not in the environment, for some animals clear theirs. The marker, in the arguments of
// every process of the zoo, is how tests find survivors without the code under test. It is also a number of seconds for
// sleep(1): every animal ends by itself after life or a little more.

const (
	zooWord = "procs-zoo"
	life    = 120 * time.Second
)

func TestMain(m *testing.M) {
	if len(os.Args) >= 4 && os.Args[1] == zooWord {
		animal := animals[os.Args[2]]
		if animal == nil {
			panic("no animal " + os.Args[2])
		}
		animal(os.Args[3], strings.Join(os.Args[4:], " "))
		return
	}
	os.Exit(m.Run())
}

var animals map[string]func(marker, arg string)

func init() { //nolint:gochecknoinits // the animals start each other, a cycle that a table alone cannot have
	animals = map[string]func(marker, arg string){
		"nap":      func(string, string) { time.Sleep(life) },
		"setsid":   setsid,
		"orphan":   orphan,
		"naked":    naked,
		"exec":     execShell,
		"comet":    comet,
		"stopped":  stopped,
		"waker":    waker,
		"deaf":     deaf,
		"keeper":   keeper,
		"threads":  threads,
		"headless": headless,
		"nested":   nested,
		"escapee":  escapee,
		"listener": listener,
		"shim":     shim,
	}
}

// zoo returns the command of an animal.
func zoo(kind, marker string, arg ...string) *exec.Cmd {
	exe, err := os.Executable()
	must(err)
	return exec.Command(exe, append([]string{zooWord, kind, marker}, arg...)...)
}

// bash returns a command that runs the script, whose $1 is the marker.
func bash(script, marker string) *exec.Cmd { return exec.Command("bash", "-c", script, "bash", marker) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// setsid has a child in another session.
func setsid(marker, _ string) {
	child := zoo("nap", marker)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(child.Start())
	time.Sleep(life)
}

// orphan leaves a process whose parent has ended, in another session.
func orphan(marker, generation string) {
	if generation == "2" {
		must(zoo("nap", marker).Start())
		return
	}
	child := zoo("orphan", marker, "2")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(child.Run())
}

// naked is orphan without an environment.
func naked(marker, _ string) {
	child := zoo("orphan", marker, "2")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child.Env = []string{}
	must(child.Run())
}

// execShell becomes a shell. The script's $1 is the marker.
func execShell(marker, script string) {
	must(syscall.Exec("/bin/sh", []string{"sh", "-c", script, "sh", marker}, os.Environ()))
}

// A fork bomb of 255 processes.
const bomb = `b() { if [ $1 -gt 0 ]; then b $(($1-1)) $2 & b $(($1-1)) $2 & fi; exec sleep $2; }; b 7 $1`

// comet forks and ends, over and over: at every look it has another pid. The child of a bare fork has one thread and no
// scheduler, so it may do no more than this. Each fork leaves a zombie if no one reaps, and pids are few (32768 where
// pid_max is the default), so there is a pause between them.
//
//go:norace
func comet(string, string) {
	pause := syscall.Timespec{Nsec: 500_000}
	for range 3000 { // 2 to 5 s
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
		child, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if child != 0 || errno != 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

// stopped stops itself. It is woken at the end of its life only.
func stopped(marker, _ string) {
	must(zoo("waker", marker).Start())
	must(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	time.Sleep(life) // another thread may take the signal, a little later
}

func waker(string, string) {
	parent := os.Getppid()
	time.Sleep(life)
	if os.Getppid() == parent {
		must(syscall.Kill(parent, syscall.SIGCONT))
	}
}

// deaf ignores what can be ignored.
func deaf(marker, _ string) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	setsid(marker, "")
}

// keeper is a pair of processes that each start the other again when it dies, in another session. Argument: the end of
// life in seconds since 1970, and "kept" for the child.
func keeper(marker, arg string) {
	end, kept := time.Now().Add(life).Unix(), false
	if arg != "" {
		text, rest, _ := strings.Cut(arg, " ")
		seconds, err := strconv.ParseInt(text, 10, 64)
		must(err)
		end, kept = seconds, rest == "kept"
	}
	if kept {
		go func() {
			// The parent holds the other end of the pipe.
			_, _ = os.Stdin.Read(make([]byte, 1))
			if time.Now().Unix() < end {
				must(zoo("keeper", marker, strconv.FormatInt(end, 10)).Start())
			}
			os.Exit(0)
		}()
		time.Sleep(time.Until(time.Unix(end, 0)))
		return
	}
	for time.Now().Unix() < end {
		child := zoo("keeper", marker, strconv.FormatInt(end, 10), "kept")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		pipe, err := child.StdinPipe()
		must(err)
		must(child.Start())
		_ = child.Wait()
		pipe.Close()
	}
}

// threads has many threads, all in the kernel.
func threads(string, string) {
	for range 200 {
		go func() {
			runtime.LockOSThread()
			nap := syscall.NsecToTimespec(int64(life))
			_ = syscall.Nanosleep(&nap, nil)
		}()
	}
	time.Sleep(life)
}

// headless ends its first thread; the others live on.
func headless(string, string) {
	go func() {
		time.Sleep(life)
		os.Exit(0)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

// nested makes cgroups in its own, with a process in each, and freezes one.
func nested(marker, group string) {
	deeper := filepath.Join(group, "outer", "inner")
	must(os.MkdirAll(deeper, 0o755))
	must(os.MkdirAll(filepath.Join(group, "empty"), 0o755))
	for _, path := range []string{filepath.Join(group, "outer"), deeper} {
		dir, err := os.Open(path)
		must(err)
		child := zoo("nap", marker)
		child.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		must(child.Start())
	}
	freeze := filepath.Join(deeper, "cgroup.freeze")
	must(os.WriteFile(freeze, []byte("1"), 0))
	time.Sleep(life)
	must(os.WriteFile(freeze, []byte("0"), 0))
}

// escapee leaves the group's cgroup, which root may, and then has a child without environment.
func escapee(marker, root string) {
	must(os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0))
	child := zoo("nap", marker)
	child.Env = []string{}
	must(child.Start())
	time.Sleep(life)
}

// listener writes what it hears to a file. With a second argument it stops itself before.
func listener(_, arg string) {
	file, stop, _ := strings.Cut(arg, " ")
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGTERM, syscall.SIGUSR1)
	must(os.WriteFile(file, []byte("ready"), 0o600))
	if stop != "" {
		must(syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	}
	select {
	case s := <-heard:
		must(os.WriteFile(file, []byte(s.String()), 0o600))
	case <-time.After(life):
	}
}

// shim makes a group and starts commands in it, as the process that owns a job does. Argument: name, cookie, kinds, and
// root if any.
func shim(marker, arg string) {
	args := append(strings.Fields(arg), "")
	must(Subreap())
	group, err := New(args[3], args[0], args[1])
	must(err)
	for kind := range strings.SplitSeq(args[2], ",") {
		must(group.Start(zoo(kind, marker)))
	}
	time.Sleep(life)
}

// survivors returns the live processes with the marker in their arguments. It shares no code with the package.
func survivors(t *testing.T, marker string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if len(line) == 0 { // a zombie, a kernel thread, or a process without its first thread
			tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/cmdline", pid))
			for _, task := range tasks {
				text, _ := os.ReadFile(task)
				line = append(line, text...)
			}
		}
		if strings.Contains(string(line), marker) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

var markers int

// newMarker returns a number of seconds, about life, that no other process has among its arguments.
func newMarker() string {
	markers++
	return fmt.Sprintf("%d.%d%07d%04d", life/time.Second, os.Getpid()%7+1, os.Getpid(), markers)
}
