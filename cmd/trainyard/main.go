// Trainyard schedules deep-learning training on GPUs. This is its command line; `trainyard --help` lists the verbs.
//
// Data goes to stdout and messages to stderr. The exit codes are listed in errors.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; no file was written")
		fmt.Fprintln(stderr, "trainyard:", err)
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "trainyard:", oneLine(err.Error()))
	return exitCode(err)
}

// oneLine joins the lines of a message.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", " ")), " ")
}
