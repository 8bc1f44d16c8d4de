package export

import (
	"io"
	"testing"

	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// BenchmarkPerfetto writes a million slices: those of 250,000 attempts of one GPU each, one after the other on 1,000
// GPUs, each of which comes up, works and stops.
func BenchmarkPerfetto(b *testing.B) {
	const gpus, attempts = 1000, 250_000
	none := sched.Time(sched.None)
	line := &timeline.Timeline{}
	for n := range gpus / 8 {
		line.Nodes = append(line.Nodes, timeline.Node{Name: "node", First: sched.GPUID(8 * n), GPUs: 8})
	}
	line.Attempts = make([]timeline.Attempt, attempts)
	line.Jobs = make([]timeline.Job, attempts)
	for i := range attempts {
		from := at(float64(i / gpus * 100))
		line.Jobs[i] = timeline.Job{Name: "a job", User: "ann", GPUs: sched.Rigid(1)}
		line.Attempts[i] = timeline.Attempt{Job: sched.JobID(i), Number: 1, Ordered: from, Up: from + at(1),
			Work: from + at(2), Kept: none, Stopped: from + at(97), Ended: from + at(99), Outcome: sched.Finished,
			GPUs: []timeline.Run{{First: sched.GPUID(i % gpus), Count: 1}}}
	}
	var wrote counter
	b.ReportAllocs()
	for b.Loop() {
		wrote = 0
		if err := Perfetto(&wrote, line); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(wrote), "bytes")
}

// counter counts what is written.
type counter int

var _ io.Writer = (*counter)(nil)

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
