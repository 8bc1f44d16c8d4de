// Command testsum reads the output of go test -json and prints it as go test without -v would: one line per package
// that passed, everything about one that failed. It ends with a line that counts tests, "N passed, N failed", and exits
// with 1 when something failed or nothing ran.
//
// With -noskip a skipped test counts as failed and is listed with its reason, since a test that is always skipped
// proves nothing. Inputs that a fuzz target skips are not meant: a target may find an input of its corpus not worth a
// run.
//
// With -slowest FILE the ten tests that took longest are added to a file, one a line, with their seconds of wall time.
//
// Tests and subtests are counted alike. A package that fails although no test of it did (it does not build, it ends
// early) counts as one failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	noskip := flag.Bool("noskip", false, "count a skipped test as failed")
	total := flag.String("total", "", "write the closing line to this `file` instead of standard output")
	slowest := flag.String("slowest", "", "add the ten slowest tests to this `file`")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, options{*noskip, *total, *slowest}); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	noskip         bool
	total, slowest string // files
}

// run copies the report of in to out. It returns an error when a test failed, none ran, or out cannot be written.
func run(in io.Reader, out io.Writer, o options) error {
	s := newSummary(out, o.noskip)
	if err := s.read(in); err != nil {
		return err
	}
	closing := s.close()
	if o.total == "" {
		s.printf("%s", closing)
	} else if err := os.WriteFile(o.total, []byte(closing), 0o666); err != nil {
		return err
	}
	if o.slowest != "" {
		if err := add(o.slowest, s.slowest(10)); err != nil {
			return err
		}
	}
	return s.verdict()
}

// add appends text to a file.
func add(name, text string) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(text); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
