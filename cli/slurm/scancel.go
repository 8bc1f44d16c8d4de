package slurm

import (
	"context"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

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
	me, batch, full      bool
}

// sends is what sends each job a signal; nil = they are cancelled.
func (f *cancelFlags) sends() (func(context.Context, *api.Client, *line) error, error) {
	name, err := signalName(f.signal)
	if err != nil || name == "" || name == "KILL" && !f.batch {
		return nil, err
	}
	in := api.Signal{Name: name}
	if f.batch {
		in.To = "main"
	} else if f.full {
		in.To = "all"
	}
	return func(ctx context.Context, c *api.Client, l *line) error {
		if l.State == "done" {
			return errOver
		}
		_, err := api.EditsOf(c).Signal(ctx, strconv.Itoa(l.ID), in)
		return err
	}, nil
}

// signalName is the name of a signal, without SIG, that may be given by its number.
func signalName(signal string) (string, error) {
	name := strings.ToUpper(signal)
	if n, err := strconv.Atoi(signal); err == nil {
		if name = unix.SignalName(syscall.Signal(n)); name == "" {
			return "", term.Usagef("scancel: --signal %d: no signal has that number, want one such as 10 or USR1", n)
		}
	}
	return strings.TrimPrefix(name, "SIG"), nil
}

func newScancel() *cobra.Command {
	var f cancelFlags
	cmd := &cobra.Command{
		Use:   "scancel [JOB...]",
		Short: "End jobs as Slurm's scancel does",
		Long: `Ends jobs as Slurm's scancel does: those that are named, or that flags select.
12 is a job, or all tasks of array 12. With --signal those that run get a signal
instead: the tasks that srun started, and of a job that is no batch script all.`,
		Example: `  scancel 12 14_[0-3]
  scancel --me -t PENDING`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.batch && f.full:
				return term.Usagef("scancel: --batch next to --full, want one of them")
			case f.signal == "" && (f.batch || f.full):
				return term.Usagef("scancel: --batch and --full say what gets --signal, want that too")
			case len(args)+len(f.users)+len(f.names)+len(f.states) == 0 && !f.me:
				return term.Usagef("scancel: No job identification provided, want JOB, --user or --name")
			}
			w, err := newWhich(given{"scancel: JOB", args}, given{"scancel: --user", f.users},
				given{"scancel: --name", f.names}, given{"scancel: --state", f.states})
			if err != nil {
				return err
			}
			if bad := noSteps("scancel", w.jobs); bad != nil {
				return bad
			}
			send, err := f.sends()
			if err != nil {
				return err
			}
			w.me, w.wide, w.all = f.me, true, len(f.states) > 0 // --state all means all
			cancelUnused.note(cmd)
			return f.to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				if send != nil {
					return w.each(cmd.Context(), c, send)
				}
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
	fs.StringVarP(&f.signal, "signal", "s", "", "`SIGNAL` to send to the tasks of srun, in place of an end")
	fs.BoolVarP(&f.batch, "batch", "b", false, "send it to the batch script alone")
	fs.BoolVarP(&f.full, "full", "f", false, "send it to the batch script, too")
	cancelUnused.define(fs)
	return cmd
}
