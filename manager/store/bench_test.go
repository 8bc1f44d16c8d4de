package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/sched"
)

// BenchmarkCommit is what it costs to make a batch durable, of one event and of a hundred, next to what
// a write and a sync of 4 KiB takes in the same run, over a file as long as a write-ahead log gets.
func BenchmarkCommit(b *testing.B) {
	b.Run("probe", probe)
	for name, events := range map[string]int{"events=1": 1, "events=100": 100} {
		b.Run(name, func(b *testing.B) { commit(b, events) })
	}
}

func probe(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		if _, err := f.WriteAt(page, int64(i%1000)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
}

func commit(b *testing.B, events int) {
	s := begin(b, b.TempDir())
	w := s.Writer(0)
	e := sched.Event{Kind: sched.AttemptStarted, Job: 3, Attempt: 1, Rate: 1}
	for b.Loop() {
		w.BeginBatch()
		for range events {
			e.Seq++
			e.Time++
			w.Log(nil, &e)
		}
		if err := w.EndBatch(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64(e.Seq)/b.Elapsed().Seconds(), "events/s")
}
