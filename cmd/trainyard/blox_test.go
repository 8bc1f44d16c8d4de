package main

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/trainyard/trainyard/internal/shareddata"
)

// Ensure that the program's --jobs-out has the recorded finish of every job, for two recorded runs of each of four
// systems. Reference: SC'24 artifact, tag artifact-v1.4, workload 2, rounds of 300 and 360 s.
func TestBloxJobsOut(t *testing.T) {
	dir := filepath.Join(shareddata.DataDir(t), "pal")
	names := map[string]string{"PAL": "pal", "PMFirst": "pm-first", "Default-Packed-S": "packed-sticky",
		"Default-Packed-NS": "packed"}
	want := map[[3]string]float64{} // by round, system and job
	for _, row := range readRows(t, filepath.Join(dir, "golden/golden-sia-fifo.csv")) {
		if name := names[row[2]]; name != "" && row[1] == "2" {
			want[[3]string{row[0], name, row[3]}] = seconds(t, row[5])
		}
	}
	compared := 0
	for _, round := range []string{"300", "360"} {
		file := filepath.Join(t.TempDir(), "jobs.csv")
		cmd := exec.Command(filepath.Join(programs, "trainyard"), "simulate", "--trace",
			filepath.Join(dir, "traces/workload-2.csv"), "--cluster", "16x4",
			"--variability", filepath.Join(dir, "golden/artifact-gpus-64.csv"), "--preset", "blox-pal", "--round",
			round,
			"--system", "pal,pm-first,packed,packed-sticky", "--set", "*.order=fifo", "--set", "pal.wrap=on",
			"--jobs-out", file)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, row := range readRows(t, file) {
			compared++
			if finish := want[[3]string{round, row[0], row[1]}]; seconds(t, row[4]) != finish {
				t.Errorf("round %s: %s: job %s finishes at %s, want %v", round, row[0], row[1], row[4], finish)
			}
		}
	}
	if compared != len(want) || compared != 8*160 {
		t.Errorf("compared %d jobs of %d, want 1280", compared, len(want))
	}
}

// readRows returns the rows below the header.
func readRows(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: %d lines, %v", path, len(all), err)
	}
	return all[1:]
}

func seconds(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
