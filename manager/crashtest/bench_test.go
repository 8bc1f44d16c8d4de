package crashtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/manager/api"
)

// rawSyncs measures how often per second 4 KiB can be written and synced at path, for about so long.
func rawSyncs(b *testing.B, path string, about time.Duration) float64 {
	b.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page, n, began := make([]byte, 4096), 0, time.Now()
	for ; time.Since(began) < about; n++ {
		if _, err := f.WriteAt(page, int64(n%1000)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkSubmit is jobs acknowledged per second by one daemon to 64 clients that each hand in one job after the other, beside the raw rate of
// syncs of the same disk right before and after. The aim is the lesser of 5 times that rate and 5,000/s.
func BenchmarkSubmit(b *testing.B) {
	const many = 64
	d := newDaemons(b, 1)
	l := d.up()
	raw := rawSyncs(b, filepath.Join(d.dir, "probe"), time.Second)
	var all []*api.Client
	for range many {
		c, err := api.Dial(string(d.state))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close() })
		all = append(all, c)
	}
	s := d.submission("jobs: [{command: [sleep, 1h], submit: 10h}]")
	each := max(b.N/many, 1)
	var work sync.WaitGroup
	var mu sync.Mutex
	var slowest time.Duration
	b.ResetTimer()
	for _, c := range all {
		work.Go(func() {
			for range each {
				began := time.Now()
				if _, err := c.Submit(b.Context(), s); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				slowest = max(slowest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	b.StopTimer()
	raw = (raw + rawSyncs(b, filepath.Join(d.dir, "probe"), time.Second)) / 2
	b.ReportMetric(float64(each*many)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(raw, "rawsyncs/s")
	b.ReportMetric(slowest.Seconds()*1e3, "ms-slowest")
	d.end(l)
	spent := l.cmd.ProcessState.UserTime() + l.cmd.ProcessState.SystemTime()
	b.ReportMetric(float64(spent.Microseconds())/float64(each*many), "us-daemon-CPU/job") // of which two cores have 2,000,000 in a second
}

// BenchmarkKnown is a daemon that knows 10,000 jobs and runs 64: how long `trainyard ps` takes to list them (aim 150 ms), what memory the daemon
// has (aim 150 MiB), and how long its successor takes until it answers.
func BenchmarkKnown(b *testing.B) {
	d := newDaemons(b, 64)
	l := d.up()
	d.submit("jobs: [{command: [sleep, 1h], count: 64, name: runs, grace: 1s}]")
	d.submit("jobs: [{command: [sleep, 1h], submit: 10h, count: 9936, name: waits}]")
	for i := range 64 {
		d.until(fmt.Sprint(i), "running")
	}
	for b.Loop() {
		if code, said := command(b, d.dir, "ps", "--state", "state"); code != 0 || strings.Count(said, "\n") < 64 {
			b.Fatalf("code %d: %.300s", code, said)
		}
	}
	rss := memory(b, l.cmd.Process.Pid)
	l.kill()
	began := time.Now()
	l = d.up()
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-restart")
	b.ReportMetric(rss, "MiB")
	b.ReportMetric(memory(b, l.cmd.Process.Pid), "MiB-restarted")
	d.end(l)
}

// memory returns the resident memory of a process in MiB.
func memory(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
