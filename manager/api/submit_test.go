package api

import (
	"path/filepath"
	"sync"
	"testing"
)

// BenchmarkSubmit is 64 clients, in this process as well, that hand in one job after the other: for profiles. manager/crashtest has the daemon
// in a process of its own, and the rate of the disk beside it.
func BenchmarkSubmit(b *testing.B) {
	const clients = 64
	r := newRig(b, 1, nil)
	s := Submission{File: "jobs: [{command: [sleep, 1h], submit: 10h}]", Dir: filepath.Dir(r.dir)}
	each := max(b.N/clients, 1)
	var work sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range clients {
		work.Go(func() {
			c, err := Dial(r.dir)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			for range each {
				if _, err := c.Submit(b.Context(), s); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(each*clients)/b.Elapsed().Seconds(), "jobs/s")
}
