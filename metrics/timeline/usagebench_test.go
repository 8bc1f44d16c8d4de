package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// BenchmarkUsage sums up what 100,000 jobs used by day and user, two attempts each.
func BenchmarkUsage(b *testing.B) {
	t := &Timeline{first: 0, end: sched.Time(90 * 24 * time.Hour), known: newBuckets(0, seriesRows)}
	for id := range 100_000 {
		at := sched.Time(id) * sched.Time(70*time.Second)
		t.Jobs = append(t.Jobs, Job{User: fmt.Sprint("u", id%50), Model: fmt.Sprint("m", id%9), Submit: at})
		for k := range int32(2) {
			up := at.Add(time.Minute)
			end := up.Add(3 * time.Hour)
			t.Attempts = append(t.Attempts, Attempt{Job: sched.JobID(id), Number: k + 1, Ordered: at, Up: up, Work: up,
				Kept: end, Stopped: sched.None, Ended: end, GPUs: []Run{{First: 0, Count: 4}}})
			at = end
		}
	}
	day := sched.Time(24 * time.Hour)
	by := UsageBy{User: true, To: sched.Never,
		Finish: func(id sched.JobID) sched.Time { return t.Attempts[2*id+1].Ended },
		Day:    func(at sched.Time) (from, to sched.Time) { return at / day * day, at/day*day + day }}
	for b.Loop() {
		if rows := UsageOf(t, by); len(rows) < 4000 {
			b.Fatal(len(rows))
		}
	}
}
