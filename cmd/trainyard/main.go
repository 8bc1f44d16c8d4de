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
	"slices"
	"strings"
	"syscall"

	"github.com/trainyard/trainyard/driver/local/shim"
)

// shimVerb has the program be the shim of a run directory, see package shim. It is no command of users.
const shimVerb = "shim"

func main() {
	if len(os.Args) == 3 && os.Args[1] == shimVerb {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// interruptible returns a context that the signals to end cancel, but for those that are ignored, as SIGHUP is under
// nohup. A second signal ends the program at once; not so a second SIGHUP, for a terminal that closes may well send two.
func interruptible() (context.Context, context.CancelFunc) {
	signals := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGHUP}, signal.Ignored)
	signals = append(signals, syscall.SIGTERM)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	return ctx, stop
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
	if coded := (*codedError)(nil); errors.Is(err, context.Canceled) && !errors.As(err, &coded) {
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
