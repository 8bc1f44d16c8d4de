package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
)

// crowd starts processes that do nothing and belong to no job, until the benchmark is over.
func crowd(b *testing.B, n int) {
	b.Helper()
	if n == 0 {
		return
	}
	cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt $1 ]; do sleep 3600 & i=$((i+1)); done; echo up; wait`, "sh",
		strconv.Itoa(n))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err = out.Read(make([]byte, 3)); err != nil {
		b.Fatal(err)
	}
}

// withChildren returns the time of processors that a process has had, and those of its children that have ended, in
// steps of 10 ms.
func withChildren(b *testing.B, pid int) (all time.Duration) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, word := range words[11:15] {
		n, bad := strconv.Atoi(word)
		if bad != nil {
			b.Fatal(bad)
		}
		all += time.Duration(n) * 10 * time.Millisecond
	}
	return all
}

// BenchmarkTrivialEnd is what a job that does nothing costs the daemon and its shim, in time of a processor, among so
// many processes of others: its end is to cost what it was, not what else runs. The aim is 30 ms among 3,000.
func BenchmarkTrivialEnd(b *testing.B) {
	for _, others := range []int{0, 1000, 3000} {
		b.Run(fmt.Sprint(others), func(b *testing.B) {
			d := newDaemons(b, 1)
			l := d.up()
			crowd(b, others)
			c, err := api.Dial(string(d.state))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			before := withChildren(b, l.cmd.Process.Pid)
			b.ResetTimer()
			d.submit(fmt.Sprintf("jobs: [{command: ['true'], count: %d, name: t}]", b.N))
			if _, err = c.Wait(b.Context(), strconv.Itoa(b.N-1)); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			spent := withChildren(b, l.cmd.Process.Pid) - before
			b.ReportMetric(float64(spent.Microseconds())/1e3/float64(b.N), "ms-CPU/job")
		})
	}
}
