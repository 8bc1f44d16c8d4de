package manager_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/manager"
)

// ofDone are the options of a manager of a folder whose jobs are all done.
func ofDone(dir string) manager.Options {
	return manager.Options{Dir: dir, Devices: device.Slots(64), Place: "slots", Unit: "slot", System: "tiresias-las"}
}

// hold opens a folder and prints how many bytes of heap and of memory this process has then, and how many milliseconds
// of a processor it took to open it.
func hold(dir string) int {
	began := cpuSeconds()
	m, err := manager.Open(context.Background(), ofDone(dir))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	spent := cpuSeconds() - began
	var pages, resident int
	b, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(b), &pages, &resident)
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	fmt.Println(mem.HeapAlloc, resident*os.Getpagesize(), int(spent*1e3))
	runtime.KeepAlive(m)
	return 0
}

// held is what a manager of so many jobs that are done has in memory, and what opening its folder takes.
type held struct{ heap, resident, ms int }

// holding has a process of its own open a folder with so many jobs that are done, each of which reported once.
func holding(tb testing.TB, jobs int) (h held) {
	tb.Helper()
	dir := tb.TempDir() + "/state"
	past(tb, ofDone(dir), 64, jobs, 1)
	out, err := exec.Command(os.Args[0], "hold", dir).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &h.heap, &h.resident, &h.ms)
	}
	if err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return h
}

// Ensure that a job that is done takes few bytes, whatever those have that are there at once: its specification and its
// state, as the core keeps them, are 640 of them.
func TestDoneJobsAreSmall(t *testing.T) {
	const few, many, most = 1500, 6000, 1000
	a, b := holding(t, few), holding(t, many)
	if got := (b.heap - a.heap) / (many - few); got > most {
		t.Errorf("%d bytes of heap for each job that is done, want at most %d: %+v with %d, %+v with %d", got, most, a,
			few, b, many)
	}
}

// BenchmarkDone is what each job that is done takes of a manager's memory, right after a start.
func BenchmarkDone(b *testing.B) {
	for b.Loop() {
		const few, many = 10_000, 40_000
		x, y := holding(b, few), holding(b, many)
		b.ReportMetric(float64(y.heap-x.heap)/(many-few), "B-heap/job")
		b.ReportMetric(float64(y.resident-x.resident)/(many-few), "B-RSS/job")
		b.ReportMetric(float64(y.ms), "ms-CPU-open")
	}
}
