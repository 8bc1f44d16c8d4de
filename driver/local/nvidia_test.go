package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// program makes a shell script. Another process writes it: a file that this one has open for writing might be handed on
// to whatever a test beside this one starts, and cannot be run meanwhile.
func program(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("sh", "-c", `cat > "$0" && chmod 700 "$0"`, path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// smi makes a nvidia-smi of two GPUs; apps is a file of what uses them.
func smi(t *testing.T, apps string) Nvidia {
	t.Helper()
	return Nvidia{Command: program(t, "nvidia-smi", `#!/bin/sh
[ "$2" = --format=csv,noheader,nounits ] || exit 9
case $1 in
--query-gpu=uuid,name,memory.total) echo "GPU-a, NVIDIA H200, 143771"; echo "GPU-b, NVIDIA H200, 143771" ;;
--query-compute-apps=gpu_uuid,pid) cat `+apps+` ;;
*) exit 8 ;;
esac
`)}
}

// Ensure that what nvidia-smi prints is understood, and that anything else is an error that says what.
func TestNvidiaList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script, err string
		want              []Device
	}{
		{"two", `echo "GPU-a, NVIDIA H200, 1024"; echo "GPU-b, NVIDIA A100-SXM4-80GB, 81920"`, "", []Device{{"GPU-a", "NVIDIA H200", 1}, {"GPU-b", "NVIDIA A100-SXM4-80GB", 80}}},
		{"none", `exit 0`, "", []Device{}},
		{"no memory", `echo "GPU-a, NVIDIA H200, [N/A]"`, `memory "[N/A]"`, nil},
		{"garbage", `head -c 3000 /dev/zero`, "nvidia-smi", nil},
		{"too few columns", `echo "No devices were found"`, "fields", nil},
		{"fails", `echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18`, "version mismatch", nil},
		{"fails on stderr", `echo "lost" >&2; exit 15`, "lost", nil},
		{"hangs", `exec sleep 300`, "no answer within 300ms", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := Nvidia{Command: program(t, "nvidia-smi", "#!/bin/sh\n"+c.script+"\n")}
			if c.name == "hangs" {
				n.Patience = 300 * time.Millisecond
			}
			got, err := n.List()
			if c.err == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
			if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("%v, %v, want an error with %q", got, err, c.err)
			}
		})
	}
	if _, err := (Nvidia{Command: "/no/such/nvidia-smi"}).List(); err == nil {
		t.Error("no nvidia-smi, no error")
	}
}

// Ensure that the processes on GPUs are read, and that one that is no number is an error.
func TestNvidiaUsers(t *testing.T) {
	t.Parallel()
	apps := filepath.Join(t.TempDir(), "apps")
	n := smi(t, apps)
	for text, want := range map[string]map[string][]int{
		"":                                 {},
		"GPU-a, 12\nGPU-b, 7\nGPU-a, 13\n": {"GPU-a": {12, 13}, "GPU-b": {7}},
		"GPU-a, [N/A]\n":                   nil,
		"GPU-a\n":                          nil,
	} {
		if err := os.WriteFile(apps, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := n.Users()
		if (err != nil) != (want == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// Ensure that a nvidia-smi that hangs holds up neither commands nor ends, and that what it shows is told once it answers.
func TestNvidiaHangs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	apps, hangs := filepath.Join(dir, "apps"), filepath.Join(dir, "hangs")
	touch(t, apps)
	n := smi(t, "/dev/null; while [ -e "+hangs+" ]; do sleep 0.1; done; cat "+apps)
	n.Patience = patience
	list, _ := jobs(t, time.Second, "exec sleep MARK")
	d, err := on(t, folder(t), 1, n, list...)
	if err != nil {
		t.Fatal(err)
	}
	h := take(t, d, sched.View{})
	if f := h.find(sched.NodeJoined, 0); f == nil || f.NodeSpec.GPUs != 2 || f.NodeSpec.GPUMemGB < 140 {
		t.Errorf("node %+v, want 2 GPUs of 140 GB", f)
	}
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	touch(t, hangs)
	h.until("a look", func() bool { return d.looking })
	h.until("a look that hangs", func() bool { return d.looking && time.Since(d.looked) > time.Second })
	began := time.Now()
	d.Command(0, sched.PauseJob)
	h.await(sched.JobCommanded, 0)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("a command took %v", took)
	}
	if err := os.WriteFile(apps, fmt.Appendf(nil, "GPU-b, %d\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	remove(t, hangs)
	h.until("somebody else", func() bool { return len(h.changes()) == 1 })
	if want := [][2]int32{{1, int32(sched.GPUForeign)}}; !reflect.DeepEqual(h.changes(), want) {
		t.Errorf("told %v, want %v", h.changes(), want)
	}
}
