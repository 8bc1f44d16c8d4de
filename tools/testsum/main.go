// Command testsum reads the output of go test -json and prints it as go test without -v would: one line per package
// that passed, everything about one that failed. It ends with a line that counts tests, "N passed, N failed", and exits
// with 1 when something failed or nothing ran.
//
// With -noskip a skipped test counts as failed and is listed with its reason, since a test that is always skipped
// proves nothing. Inputs that a fuzz target skips are not meant: a target may find an input of its corpus not worth a
// run.
//
// Tests and subtests are counted alike. A package that fails although no test of it did (it does not build, it ends
// early) counts as one failure.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	noskip := flag.Bool("noskip", false, "count a skipped test as failed")
	total := flag.String("total", "", "write the closing line to this `file` instead of standard output")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *noskip, *total); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

// run copies the report of in to out. It returns an error when a test failed, none ran, or out cannot be written.
func run(in io.Reader, out io.Writer, noskip bool, total string) error {
	s := newSummary(out, noskip)
	if err := s.read(in); err != nil {
		return err
	}
	closing := s.close()
	if total == "" {
		s.printf("%s", closing)
	} else if err := os.WriteFile(total, []byte(closing), 0o666); err != nil {
		return err
	}
	return s.verdict()
}
