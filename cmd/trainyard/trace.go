package main

import "github.com/spf13/cobra"

func newTrace() *cobra.Command {
	cmd := group(&cobra.Command{Use: "trace", Short: "Describe and convert traces"})
	cmd.AddCommand(newTraceDescribe(), newTraceConvert())
	return cmd
}

func newTraceConvert() *cobra.Command {
	format, unit, to := "", "", ""
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Write a trace in Trainyard's own format to stdout",
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
	cmd.Flags().StringVar(unit, "unit", "", "what 1 means in a time of a tiresias trace: `DURATION` such as 1ms, or seconds")
}
