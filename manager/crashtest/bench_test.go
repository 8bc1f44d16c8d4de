package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
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

// BenchmarkSubmit is jobs acknowledged per second by one daemon to 64 clients that each submit one job after the other,
// next to the raw rate of syncs of the same disk right before and after. The aim is the lesser of 5 times that rate and
// 5,000/s.
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
	// of which two cores have 2,000,000 in a second
	b.ReportMetric(float64(spent.Microseconds())/float64(each*many), "us-daemon-CPU/job")
}

// BenchmarkKnown is a daemon that knows 10,000 jobs and runs 64: how long `trainyard ps` takes to list them all (aim
// 150 ms), what memory the daemon has (aim 150 MiB), and how long its successor takes until it answers.
func BenchmarkKnown(b *testing.B) {
	d := newDaemons(b, 64)
	l := d.up()
	d.submit("jobs: [{command: [sleep, 1h], count: 64, name: runs, grace: 1s}]")
	d.submit("jobs: [{command: [sleep, 1h], submit: 10h, count: 9936, name: waits}]")
	for i := range 64 {
		d.until(fmt.Sprint(i), "running")
	}
	var list cost
	for b.Loop() {
		list.of(d, l, "ps")
	}
	list.report(b, "ps")
	rss := residentMiB(b, l.cmd.Process.Pid)
	l.kill()
	began := time.Now()
	l = d.up()
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-restart")
	b.ReportMetric(rss, "MiB")
	b.ReportMetric(residentMiB(b, l.cmd.Process.Pid), "MiB-restarted")
	d.end(l)
}

// BenchmarkQueued is a daemon in whose queue 10,000 jobs wait: how long `trainyard ps` takes to list them all, those of
// a terminal's height, and `trainyard why` to answer for the last of them (aims 100 ms).
func BenchmarkQueued(b *testing.B) {
	d := newDaemons(b, 2)
	l := d.up()
	d.submit("jobs: [{command: [sleep, 1h], count: 10000, name: q, grace: 1s}]")
	d.until("1", "running")
	var list, short, why cost
	for b.Loop() {
		list.of(d, l, "ps")
		short.of(d, l, "ps", "-n", "40")
		why.of(d, l, "why", "9999")
	}
	list.report(b, "ps")
	short.report(b, "ps40")
	why.report(b, "why")
	d.end(l)
}

// cost is what a verb costs, summed up.
type cost struct {
	n            int
	verb, daemon time.Duration // of a processor
	fastest      time.Duration
}

// of runs a verb, which must say something.
func (c *cost) of(d *daemons, l *life, args ...string) {
	d.t.Helper()
	before, began := ticks(d.t, l.cmd.Process.Pid), time.Now()
	cmd := exec.Command(trainyard, append(args, "--state", "state")...)
	cmd.Dir = d.dir
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil || len(out) < 100 {
		d.t.Fatalf("%v: %v\n%.300s", args, err, out)
	}
	if c.n++; c.n == 1 || took < c.fastest {
		c.fastest = took
	}
	c.verb += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.daemon += ticks(d.t, l.cmd.Process.Pid) - before
}

func (c *cost) report(b *testing.B, verb string) {
	b.ReportMetric(float64(c.verb.Milliseconds())/float64(c.n), "ms-CPU-"+verb)
	b.ReportMetric(float64(c.daemon.Milliseconds())/float64(c.n), "ms-daemon-CPU-"+verb)
	b.ReportMetric(float64(c.fastest.Milliseconds()), "ms-fastest-"+verb)
}

// ticks returns the time of processors that a process has had, in steps of 10 ms.
func ticks(t testing.TB, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(words[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(words[12])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

// residentMiB returns the resident memory of a process in MiB.
func residentMiB(b testing.TB, pid int) float64 {
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
