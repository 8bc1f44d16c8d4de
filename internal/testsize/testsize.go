// Package testsize gives tests that try something many times their size: small with every change, large at night.
//
//	go test ./manager/crashtest -size full
//
// A test declares how often it tries, for either size, as a flag of its own, so that one may ask for any number:
//
//	var kills = testsize.Flag("kills", 60, 1000, "times that a daemon under load is killed")
//
// Only tests import this package: who imports it has the flag -size.
package testsize

import (
	"flag"
	"fmt"
)

var size = flag.String("size", "ci", "how large campaigns are: ci, or full")

// Count is how often something is tried.
type Count struct {
	ci, full int
	given    *int
}

// Flag declares a flag for a count that is ci or full, by -size, unless the flag says otherwise.
func Flag(name string, ci, full int, usage string) *Count {
	usage = fmt.Sprintf("%s (default %d, %d with -size full)", usage, ci, full)
	return &Count{ci, full, flag.Int(name, 0, usage)}
}

// N returns the count. It panics if -size is neither ci nor full, or the count is negative.
func (c *Count) N() int {
	n, err := c.of(*size)
	if err != nil {
		panic(err)
	}
	return n
}

func (c *Count) of(size string) (int, error) {
	switch {
	case *c.given < 0:
		return 0, fmt.Errorf("testsize: %d times, want a number >= 0", *c.given)
	case *c.given > 0:
		return *c.given, nil
	case size == "ci":
		return c.ci, nil
	case size == "full":
		return c.full, nil
	}
	return 0, fmt.Errorf("testsize: -size %q, want ci or full", size)
}

// Times returns n, or the many times more of it that a full campaign tries.
func Times(n, more int) int {
	if *size == "full" {
		return n * more
	}
	return n
}
