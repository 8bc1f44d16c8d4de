package server

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/sched"
)

// BenchmarkBoard is a second of a board of 10,000 jobs with ten viewers, in which 100 jobs change, or none: four looks,
// and each viewer takes and encodes what changed. It reports the share of a core that takes.
func BenchmarkBoard(b *testing.B) {
	const jobs, looks, viewers = 10_000, int(time.Second / boardEvery), 10
	for _, changes := range []int{100, 0} {
		b.Run(fmt.Sprint("changes=", changes), func(b *testing.B) {
			host := &reluctant{left: 1 << 62, v: sched.View{Jobs: make([]sched.Job, jobs)}}
			for i := range host.v.Jobs {
				host.v.Jobs[i] = sched.Job{State: sched.Waiting, FirstStart: sched.None, End: sched.None,
					Spec: &sched.JobSpec{Name: fmt.Sprint("job-", i), User: "ann", GPUs: sched.Rigid(2)}}
			}
			h := newHub(&Server{o: Options{Host: host, Site: plainSite{}}})
			h.viewers, h.rows = make(map[*viewer]bool), make(map[int]api.Row)
			for range viewers {
				h.viewers[&viewer{news: make(chan struct{}, 1), jobs: map[int]bool{}, gone: map[int]bool{}}] = true
			}
			if err := h.look(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
			takeAll(b, h)
			seq, next, sent := uint64(1), 0, 0
			start := cpuOfProcess(b)
			for b.Loop() {
				for range looks {
					for range changes / looks {
						host.v.Jobs[next%jobs].Attempts++
						next += 7
					}
					seq++
					if changes > 0 { // where nothing happens, devices alone are looked at, once a second
						if err := h.look(b.Context(), seq); err != nil {
							b.Fatal(err)
						}
					}
					sent += takeAll(b, h)
				}
				if changes == 0 {
					if err := h.look(b.Context(), seq); err != nil {
						b.Fatal(err)
					}
				}
			}
			spent := cpuOfProcess(b) - start
			b.ReportMetric(100*spent.Seconds()/float64(b.N), "%core")
			b.ReportMetric(float64(sent)/float64(b.N), "bytes/s")
		})
	}
}

// takeAll has each viewer take what changed, and returns how many bytes that are.
func takeAll(b *testing.B, h *hub) (n int) {
	b.Helper()
	for v := range h.viewers {
		if d := h.take(v); d != nil {
			text, err := json.Marshal(d)
			if err != nil {
				b.Fatal(err)
			}
			n += len(text)
		}
	}
	return n
}

// cpuOfProcess returns the CPU time that the process has used.
func cpuOfProcess(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
