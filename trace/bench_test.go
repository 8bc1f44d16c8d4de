package trace

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// BenchmarkReadPhilly reads 111,549 jobs from 5.9 MB of text in 1.3 MB of gzip. Bound: 60 ms of CPU. Half of it is
// decompression: the median of 15 reads was 44 to 48 ms on a shared machine; next to other work on the host it rose to
// 55 to 90 ms at times, which misses the bound.
func BenchmarkReadPhilly(b *testing.B) {
	path := filepath.Join(shareddata.DataDir(b), "traces/philly/philly_gpu_jobs.csv.gz")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGunzipPhilly is the part of BenchmarkReadPhilly that is decompression.
func BenchmarkGunzipPhilly(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(shareddata.DataDir(b), "traces/philly/philly_gpu_jobs.csv.gz"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := readText(bytes.NewReader(data), "philly"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse reads a million generated jobs from plain text.
func BenchmarkParse(b *testing.B) {
	var text bytes.Buffer
	if err := Generate(million).Write(&text, "trainyard", false); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Parse(bytes.NewReader(text.Bytes()), "million", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConvert writes a million generated jobs from a file to nowhere, row by row.
func BenchmarkConvert(b *testing.B) {
	path := filepath.Join(b.TempDir(), "million.csv")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	if err := Generate(million).Write(f, "trainyard", false); err != nil {
		b.Fatal(err)
	}
	f.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Convert(path, Options{}, io.Discard, "trainyard", false); err != nil {
			b.Fatal(err)
		}
	}
}

var million = Generator{Seed: 1, Jobs: 1_000_000, Load: .9, GPUs: 4096, Mix: PhillyMix()}

// BenchmarkGenerate makes a million jobs. Bound: about a second.
func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		Generate(million)
	}
}

func BenchmarkWriteCSV(b *testing.B) {
	t := Generate(million)
	for b.Loop() {
		if err := t.Write(io.Discard, "trainyard", false); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLike draws a million jobs of each site one by one. Bound: a second, and no memory that grows with them but
// for their names.
func BenchmarkLike(b *testing.B) {
	benchmarkSites(b, func(g Generator) error {
		for range g.All() {
		}
		return nil
	})
}

// BenchmarkLikeWrite draws and writes a million jobs. Bound: a second.
func BenchmarkLikeWrite(b *testing.B) {
	benchmarkSites(b, func(g Generator) error { return g.WriteCSV(io.Discard) })
}

// benchmarkSites has do use a generator of a million jobs for each site.
func benchmarkSites(b *testing.B, do func(Generator) error) {
	for _, site := range Sites() {
		g, err := Like(site)
		if err != nil {
			b.Fatal(err)
		}
		g.Jobs = 1_000_000
		b.Run(site, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := do(g); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
