package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes; doc.go says what they mean.
const (
	exitDone      = 0
	exitError     = 1
	exitUsage     = 2
	exitFailed    = 3
	exitPreempted = 75
	exitOverlap   = 99
	exitSignal    = 128 // plus the signal's number
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the program; it returns the exit code.
func run(args []string) int {
	// Before all else: a signal that comes while the run starts is answered at the first step. There is room for one,
	// and a run needs no more.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)

	c, err := parse(args, os.Getenv, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		complain(err)
		return exitUsage
	}
	l, err := openLedger(c.ledger)
	switch {
	case errors.Is(err, errOverlap):
		complain(err)
		return exitOverlap
	case err != nil:
		complain(err)
		return exitError
	}
	t := newTraining(c, l, os.Stdout, os.Stderr)
	code, err := t.resumeAndRun(stop)
	if err != nil {
		complain(err)
		code = exitError
	}
	if err := l.end(code, t.step); err != nil {
		complain(err)
	}
	return code
}

func (t *training) resumeAndRun(stop <-chan os.Signal) (code int, err error) {
	if err := t.resume(); err != nil {
		return exitError, err
	}
	return t.run(stop)
}

func complain(err error) { fmt.Fprintln(os.Stderr, "trainer:", err) }
