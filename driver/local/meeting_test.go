package local

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/ports"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/sched"
)

// standIns are launchers that this binary plays, by its name: each listens where the real one does, starts its ranks,
// and ends with 1 unless all that come to it are its own ranks.
var standIns = map[string]func(args []string) (port, ranks string){
	"torchrun": func(args []string) (string, string) {
		port := os.Getenv("PET_MASTER_PORT")
		if slices.Contains(args, "--standalone") {
			port = "29400" // before 2.1
		}
		return port, os.Getenv("PET_NPROC_PER_NODE")
	},
	"accelerate": func(args []string) (string, string) {
		return valueAfter(args, "--main_process_port", "29500"), valueAfter(args, "--num_processes", "1")
	},
	"deepspeed": func(args []string) (string, string) {
		return valueAfter(args, "--master_port", "29500"), "2"
	},
}

// valueAfter returns what follows an option, or what holds without it.
func valueAfter(args []string, option, otherwise string) string {
	if i := slices.Index(args, option); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return otherwise
}

// play is a launcher or one of its ranks.
func play(launcher func([]string) (string, string)) int {
	if address := os.Getenv("STAND_IN_MEETS"); address != "" {
		return meet(address)
	}
	port, ranks := launcher(os.Args[1:])
	n, err := strconv.Atoi(ranks)
	if err != nil || n != 2 {
		fmt.Println("ranks", ranks, "want 2")
		return 1
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer l.Close()
	fmt.Println("meets at", port)
	for { // until all launchers listen
		if _, missing := os.Stat("go"); missing == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	for range n {
		rank := exec.Command("/proc/self/exe")
		rank.Args[0] = os.Args[0]
		rank.Env = append(os.Environ(), "STAND_IN_MEETS=127.0.0.1:"+port)
		if err := rank.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	for range n {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		line, _ := bufio.NewReader(c).ReadString('\n')
		_ = c.Close()
		if who := strings.TrimSpace(line); who != os.Getenv("TRAINYARD_JOB_ID") {
			fmt.Println("met a rank of job", who)
			return 1
		}
	}
	return 0
}

// meet is a rank: it says whose it is.
func meet(address string) int {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 1
	}
	defer c.Close()
	_, _ = fmt.Fprintln(c, os.Getenv("TRAINYARD_JOB_ID"))
	return 0
}

// Ensure that twenty jobs at once, which name no port, meet their own ranks, whatever their launcher takes by itself,
// while others hold ports of the range.
func TestLaunchersMeetTheirOwn(t *testing.T) {
	t.Parallel()
	const n = 20
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, bin, work := folder(t), t.TempDir(), t.TempDir()
	var list []Arrival
	commands := [][]string{{"torchrun", "--standalone", "train.py"}, {"torchrun", "train.py"},
		{"accelerate", "launch", "train.py"}, {"deepspeed", "train.py"}}
	for name := range standIns {
		if failed := os.Symlink(exe, filepath.Join(bin, name)); failed != nil {
			t.Fatal(failed)
		}
	}
	for i := range n {
		command := slices.Clone(commands[i%len(commands)])
		command[0] = filepath.Join(bin, command[0])
		job := task.Task{Command: command, Dir: work, Grace: time.Second}
		list = append(list, Arrival{Spec: sched.JobSpec{GPUs: sched.Rigid(2), Task: job.Encode()}})
	}
	r := ports.Range{First: 16000, Last: 17999}
	holdSome(t, r, 200)
	d, err := New(Options{State: shim.State(dir), Epoch: 1, Origin: time.Now(), Node: "here", Ports: r,
		Devices: device.Slots(2 * n), Jobs: list, Shim: []string{exe, "shim"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	h := take(t, d, sched.View{})
	h.arrivals(n)
	for j := range sched.JobID(n) {
		h.apply(start(j, 1, sched.GPUID(2*j), sched.GPUID(2*j+1)))
	}
	h.until("all launchers that listen", func() bool {
		listening := 0
		for j := range sched.JobID(n) {
			text, _ := os.ReadFile(shim.State(dir).RunDir(int32(j), 1).Output())
			listening += strings.Count(string(text), "\n") // of one that cannot, the error
		}
		return listening >= n
	})
	touch(t, filepath.Join(work, "go"))
	for j := range sched.JobID(n) {
		if e := h.await(sched.AttemptEnded, j); e.Outcome != sched.Finished {
			t.Errorf("job %d ended as %v: %s", j, e.Outcome, h.output(int32(j), 1))
		}
	}
}

// holdSome listens at random ports of a range.
func holdSome(t *testing.T, r ports.Range, n int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(r.First+rand.IntN(r.Last-r.First)))
		if err == nil { // else it is held already
			t.Cleanup(func() { _ = l.Close() })
		}
	}
}

// Ensure that GPUs are named by number where that is wanted, and that a part of one, which has none, is refused.
func TestVisible(t *testing.T) {
	t.Parallel()
	held := []device.Device{{Name: "GPU-a", Index: 5}, {Name: "GPU-b", Index: 0}}
	for byIndex, want := range map[bool]string{false: "GPU-a,GPU-b", true: "5,0"} {
		env, err := visible(&device.SMI{}, held, byIndex)
		if got, _ := last(env, "CUDA_VISIBLE_DEVICES"); err != nil || got != want {
			t.Errorf("by index %v: %q, %v, want %q", byIndex, got, err, want)
		}
	}
	env, err := visible(device.Slots(2), held, true)
	if err != nil || !slices.Equal(env, []string{"CUDA_VISIBLE_DEVICES="}) {
		t.Errorf("slots: %q, %v", env, err)
	}
	held[0].Slice = "1g.10gb"
	if _, err = visible(&device.SMI{}, held, true); err == nil || !strings.Contains(err.Error(), "want a whole GPU") {
		t.Errorf("a part of a GPU by number: %v", err)
	}
}
