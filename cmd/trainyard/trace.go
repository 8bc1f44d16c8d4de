package main

import (
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
	format, unit, to := "", "", ""
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a trace in Trainyard's own format to stdout",
		Long:  "Writes a trace in Trainyard's own format to stdout.\n\n" + formatsHelp(),
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "trainyard" {
				return usagef("--to %q, want trainyard", to)
			}
			t, err := readTrace(args[0], format, unit)
			if err != nil {
				return err
			}
			return t.WriteCSV(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&to, "to", "trainyard", "format `NAME` to write")
	traceFlags(cmd, &format, &unit)
	return cmd
}

// traceFlags defines the flags that say how a trace is read.
func traceFlags(cmd *cobra.Command, format, unit *string) {
	cmd.Flags().StringVar(format, "format", "", "format `NAME` of the trace (default: told by its header)")
	completeFlag(cmd, "format", oneOf(formatNames))
	cmd.Flags().StringVar(unit, "unit", "", "what 1 means in a time of a tiresias trace: `DURATION` such as 1ms, or seconds")
}

// formatsHelp says how traces are read: the formats and their columns.
func formatsHelp() string {
	var b strings.Builder
	b.WriteString(wrap("A trace is a CSV file, may be gzipped, whose header line names the columns, in any order, and thereby "+
		"tells the format. Times are in seconds; --unit says another unit of a tiresias trace. Columns that the format does not know are "+
		"refused. Columns in brackets may be left out. Formats (--format):", defaultWidth, 0) + "\n")
	for _, f := range trace.Formats() {
		b.WriteString("\n  " + wrap(f.Name+": "+f.Line, defaultWidth, 4) + "\n")
		columns := strings.Join(f.Columns, ", ")
		if len(f.Optional) > 0 {
			columns += " [" + strings.Join(f.Optional, ", ") + "]"
		}
		b.WriteString("    " + wrap(columns, defaultWidth, 4) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
