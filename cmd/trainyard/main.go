// Trainyard schedules deep-learning training on GPUs. This is its command line; `trainyard --help` lists the verbs.
//
// Data goes to stdout and messages to stderr. Package term lists the exit codes.
package main

import (
	"context"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/experiment"
	"github.com/trainyard/trainyard/cli/export"
	"github.com/trainyard/trainyard/cli/jobs"
	"github.com/trainyard/trainyard/cli/past"
	"github.com/trainyard/trainyard/cli/plan"
	"github.com/trainyard/trainyard/cli/serve"
	"github.com/trainyard/trainyard/cli/simulate"
	"github.com/trainyard/trainyard/cli/slurm"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cli/trace"
	"github.com/trainyard/trainyard/cli/ui"
	"github.com/trainyard/trainyard/driver/local/shim"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == serve.ShimVerb {
		os.Exit(shim.Main(shim.RunDir(os.Args[2])))
	}
	ctx, stop := term.Interruptible()
	code := run(ctx, slurm.Arguments(os.Args), os.Stdout, os.Stderr)
	stop()
	os.Exit(slurm.Code(os.Args[0], code))
}

// run carries out one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return term.Execute(ctx, newRoot(), args, stdout, stderr)
}

// newRoot returns the command with all its verbs.
func newRoot() *cobra.Command {
	return term.Root(slices.Concat(serve.Verbs(), jobs.Verbs(new(serve.Own)), slurm.Verbs(), past.Verbs(),
		simulate.Verbs(), trace.Verbs(), plan.Verbs(), experiment.Verbs(), ui.Verbs(), export.Verbs())...)
}
