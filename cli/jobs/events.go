package jobs

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/kept"
)

func newEvents() *cobra.Command {
	var to client.Target
	var follow bool
	var from int64
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Print what happened, as lines of JSON",
		Long: `Prints the log of events so far: what came from outside, what was decided, what
was ordered. ` + "`trainyard replay`" + ` reads it. With --follow it has no header, and
goes on.`,
		Example: "  trainyard events > log.jsonl && trainyard replay log.jsonl\n  trainyard events -f",
		Args:    term.Exactly(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !cmd.Flags().Changed("from"):
			case !follow:
				return term.Usagef("--from %d, want it with --follow: what there is is printed whole", from)
			case from < 0:
				return term.Usagef("--from %d, want >= 0", from)
			}
			return nil
		},
		RunE: to.OrFolder(func(cmd *cobra.Command, c *api.Client, _ []string) error {
			if !follow {
				return c.WriteLog(cmd.Context(), cmd.OutOrStdout())
			}
			client.Outlast(cmd, c)
			err := c.Events(cmd.Context(), from, func(_ uint64, line []byte) error {
				return term.WriteText(cmd.OutOrStdout(), string(line)+"\n")
			})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		}, func(cmd *cobra.Command, dir kept.Folder, _ []string) error {
			if follow {
				return client.Unserved(dir, "--follow needs one")
			}
			return dir.WriteLog(cmd.OutOrStdout())
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	to.AddFlags(cmd)
	fs.BoolVarP(&follow, "follow", "f", false, "what happens from now on, until interrupted")
	fs.Int64Var(&from, "from", -1, "with --follow: from event number `SEQ` on, 0 = all")
	return cmd
}
