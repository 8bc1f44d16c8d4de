package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/trace"
)

func newTrace() *cobra.Command {
	cmd := term.Group(&cobra.Command{Use: "trace", Short: "Describe, convert and generate traces"})
	cmd.AddCommand(newTraceDescribe(), newTraceConvert(), newTraceGenerate())
	return cmd
}

func newTraceConvert() *cobra.Command {
	var f traceFlags
	to, notes := "", false
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a trace in Trainyard's own format, or in SWF, to stdout",
		Long: `Writes a trace in Trainyard's own format, or in the Standard Workload Format, to
stdout. Where rows are in order of submission the file is read row by row, so
that memory does not grow with its length. What was left out or is odd is said
on stderr.

` + inputs.FormatsHelp(),
		Example: `  trainyard trace convert cluster_job_log --notes > philly.csv
  trainyard trace convert jobs.csv --to swf > jobs.swf`,
		Args: term.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(trace.Written(), to) {
				return term.Usagef("--to %q, want %s", to, strings.Join(trace.Written(), " or "))
			}
			t, err := f.convert(cmd, args[0], to, notes)
			if err != nil {
				return err
			}
			for _, w := range t.Warnings {
				fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: %s: %s\n", args[0], w)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "trainyard", "format `NAME` to write: trainyard or swf")
	term.CompleteFlag(cmd, "to", term.OneOf(trace.Written))
	cmd.Flags().BoolVar(&notes, "notes", false, "start with comment lines: source, origin of times, what was left out")
	f.define(cmd)
	return cmd
}

func (f *traceFlags) convert(cmd *cobra.Command, path, to string, notes bool) (*trace.Trace, error) {
	var t *trace.Trace
	err := f.with(path, func(o trace.Options) (err error) {
		t, err = trace.Convert(path, o, cmd.OutOrStdout(), to, notes)
		return err
	})
	return t, err
}

// Verbs returns the verb about traces.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newTrace(),
	}
}
