package main

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/trainyard/trainyard/trace"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files and bundled examples")

const exampleTrace = "../../examples/testbed.csv"

// TestExampleTrace checks that the bundled trace is what its generator makes.
func TestExampleTrace(t *testing.T) {
	var want bytes.Buffer
	if err := trace.Testbed(1).Write(&want, "trainyard", false); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(exampleTrace, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(exampleTrace)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from trace.Testbed(1); go test ./cmd/trainyard -run TestExampleTrace -rewrite",
			exampleTrace)
	}
}
