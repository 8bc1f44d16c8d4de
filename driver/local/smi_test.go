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

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/sched"
)

// program makes a shell script. Another process writes it: a file that this one has open for writing might be handed on
// to whatever a test next to this one starts, and cannot be run meanwhile.
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
func smi(t *testing.T, apps string) *device.SMI {
	t.Helper()
	return &device.SMI{Command: program(t, "nvidia-smi", `#!/bin/sh
case $1 in
--query-gpu=uuid,name,*) echo "GPU-a, NVIDIA H200, 0, 00000000:0A:00.0, 143771, 700.00, Disabled"
	echo "GPU-b, NVIDIA H200, 1, 00000000:0B:00.0, 143771, 700.00, Disabled" ;;
--query-gpu=uuid,pci*) for g in a b; do echo "GPU-$g, 00000000:0$g:00.0, 4, 0, 75.31, 31, 0x0000000000000001, Disabled"; done ;;
--query-compute-apps=*) cat `+apps+` ;;
*) exit 8 ;;
esac
`)}
}

// Ensure that a nvidia-smi that hangs holds up neither commands nor ends, and that what it shows is reported once it
// answers.
func TestHangs(t *testing.T) {
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
	f := h.find(sched.NodeJoined, 0)
	if f == nil || f.NodeSpec.GPUs != 2 || f.NodeSpec.GPUMemGB < 140 ||
		!reflect.DeepEqual(f.NodeSpec.Devices, []string{"GPU-a", "GPU-b"}) {
		t.Errorf("node %+v, want GPU-a and GPU-b of 140 GB", f)
	}
	h.arrivals(1)
	h.apply(start(0, 1, 0))
	h.await(sched.AttemptStarted, 0)
	touch(t, hangs)
	h.until("a look", func() bool { return d.dev.looking })
	h.until("a look that hangs", func() bool { return d.dev.looking && time.Since(d.dev.looked) > time.Second })
	began := time.Now()
	h.box.Command(0, sched.PauseJob)
	h.await(sched.JobCommanded, 0)
	if took := time.Since(began); took > patience/2 {
		t.Errorf("a command took %v", took)
	}
	if err := os.WriteFile(apps, fmt.Appendf(nil, "GPU-b, %d, 512\n", os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	remove(t, hangs)
	h.until("someone else", func() bool { return len(h.changes()) == 1 })
	if want := [][2]int32{{1, int32(sched.GPUForeign)}}; !reflect.DeepEqual(h.changes(), want) {
		t.Errorf("reported %v, want %v", h.changes(), want)
	}
}
