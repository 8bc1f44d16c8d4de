package slurm

import (
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// cancelUnused means nothing here.
var cancelUnused = unused{"partition/p", "account/A", "qos/q", "clusters/M", "nodelist/w", "reservation/R", "wckey",
	"verbose/v!", "quiet/Q!", "hurry/H!", "ctld!", "sibling", "interactive/i!"}

// cancelFlags are the flags of scancel as given.
type cancelFlags struct {
	to                   client.Target
	users, names, states []string
	signal               string
	me                   bool
}

func newScancel() *cobra.Command {
	var f cancelFlags
	cmd := &cobra.Command{
		Use:   "scancel [JOB...]",
		Short: "End jobs as Slurm's scancel does",
		Long: `Ends jobs as Slurm's scancel does: those that are named, or that flags select.
12 is a job, or all tasks of array 12.`,
		Example: `  scancel 12 14_[0-3]
  scancel --me -t PENDING`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.signal != "":
				return term.Refusedf("scancel: --signal is not here; scontrol requeue has a job save and go on, " +
					"kill on the machine sends signals to processes")
			case len(args)+len(f.users)+len(f.names)+len(f.states) == 0 && !f.me:
				return term.Usagef("scancel: No job identification provided, want JOB, --user or --name")
			}
			w, err := newWhich(given{"scancel: JOB", args}, given{"scancel: --user", f.users},
				given{"scancel: --name", f.names}, given{"scancel: --state", f.states})
			if err != nil {
				return err
			}
			w.me, w.wide, w.all = f.me, true, len(f.states) > 0 // --state all means all
			cancelUnused.note(cmd)
			return f.to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				return w.command(cmd.Context(), c, "cancel", func(*line) error { return nil })
			})(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&f.users, "user", "u", nil, "jobs of `USERS`")
	fs.BoolVar(&f.me, "me", false, "jobs of yours")
	fs.StringArrayVarP(&f.names, "name", "n", nil, "jobs with these `NAMES`")
	fs.StringArrayVarP(&f.states, "state", "t", nil, "jobs in `STATES`: PENDING, RUNNING")
	fs.StringVarP(&f.signal, "signal", "s", "", "`SIGNAL`: refused, with what to use instead")
	fs.BoolP("batch", "b", false, "")
	fs.BoolP("full", "f", false, "")
	for _, name := range []string{"batch", "full"} { // which part of a job gets a signal
		_ = fs.MarkHidden(name)
	}
	cancelUnused.define(fs)
	return cmd
}
