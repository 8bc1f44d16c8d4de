package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/trace"
)

func newTrace() *cobra.Command {
	cmd := group(&cobra.Command{Use: "trace", Short: "Describe, convert and generate traces"})
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

` + formatsHelp(),
		Example: `  trainyard trace convert cluster_job_log --notes > philly.csv
  trainyard trace convert jobs.csv --to swf > jobs.swf`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(trace.Written(), to) {
				return usagef("--to %q, want %s", to, strings.Join(trace.Written(), " or "))
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
	completeFlag(cmd, "to", oneOf(trace.Written))
	cmd.Flags().BoolVar(&notes, "notes", false, "begin with comment lines: source, origin of times, what was left out")
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

// formatsHelp says how traces are read: the formats and their columns.
func formatsHelp() string {
	var b strings.Builder
	b.WriteString(wrap("A trace is a table, may be gzipped, whose header line names the columns, in any order, and thereby "+
		"tells the format. Times are in seconds unless the format says otherwise; --unit says another unit of a tiresias trace. "+
		"Columns that the format does not know are refused. Columns in brackets may be left out. A format without header line is told "+
		"by its first row. Formats (--format):", defaultWidth, 0) + "\n")
	for _, f := range trace.Formats() {
		b.WriteString("\n  " + wrap(f.Name+": "+f.Line, defaultWidth, 4) + "\n")
		columns := strings.Join(f.Columns, ", ")
		if len(f.Optional) > 0 {
			columns += " [" + strings.Join(f.Optional, ", ") + "]"
		}
		if len(f.Ignored) > 0 {
			columns += fmt.Sprintf(" and %d that are read over, such as %s", len(f.Ignored), f.Ignored[0])
		}
		b.WriteString("    " + wrap(columns, defaultWidth, 4) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// traceVerbs returns the verb about traces.
func traceVerbs() []*cobra.Command {
	return []*cobra.Command{
		newTrace(),
	}
}
