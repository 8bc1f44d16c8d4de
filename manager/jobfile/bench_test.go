package jobfile

import "testing"

// BenchmarkParse is what it costs to read the file of one job, as `trainyard submit -- COMMAND` hands it in.
func BenchmarkParse(b *testing.B) {
	file := []byte("jobs: [{command: [sleep, 1h], submit: 10h}]")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(file, "/tmp/jobs.yaml"); err != nil {
			b.Fatal(err)
		}
	}
}
