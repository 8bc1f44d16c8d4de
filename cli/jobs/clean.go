package jobs

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// cleanFlags are the flags of clean as given.
type cleanFlags struct {
	to      client.Target
	older   term.Days
	outputs bool
	runs    bool
	scripts bool
	dry     bool
	json    bool
}

func newClean() *cobra.Command {
	f := cleanFlags{older: term.Days(30 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what jobs that are done wrote",
		Long: `Removes the run folders of jobs that have been done for some time, with what
their attempts wrote, or with --outputs that alone. Checkpoints stay, and so
does the log: ps and why know the jobs still. For admins.
` + "`trainyard serve --keep 30d`" + ` does so by itself.`,
		Example: `  trainyard clean --dry-run
  trainyard clean --older 7d --outputs`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.outputs && f.runs:
				return term.Usagef("--outputs and --runs are both given, want one: --runs removes outputs too")
			case f.older < 0:
				return term.Usagef("--older %v, want a time such as 30d or 12h, or 0s for all", &f.older)
			}
			return f.to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				return f.clean(cmd, c)
			})(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.Var(&f.older, "older", "only of jobs that have been done for this `TIME`, as 30d or 12h")
	fs.BoolVar(&f.outputs, "outputs", false, "remove outputs alone")
	fs.BoolVar(&f.runs, "runs", false, "remove run folders, outputs included (the default)")
	fs.BoolVar(&f.scripts, "snapshots", false, "remove copies of scripts that no job runs which is not done,\n"+
		"and of working trees that none has run in for --older")
	fs.BoolVar(&f.dry, "dry-run", false, "only say what would be removed")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the text")
	return cmd
}

// mostScripts is how many copies of scripts are named; --json names all.
const mostScripts = 20

func (f *cleanFlags) clean(cmd *cobra.Command, c *api.Client) error {
	doc, err := c.Clean(cmd.Context(), api.Clean{OlderSec: time.Duration(f.older).Seconds(), Outputs: f.outputs,
		Runs: f.runs, Snapshots: f.scripts, Dry: f.dry})
	if err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), doc)
	}
	what := "removed"
	if doc.Dry {
		what = "would be removed"
	}
	text := fmt.Sprintf("%s: %s of %s, %.1f MiB\n", what, term.Counted(doc.Attempts, "attempt"),
		term.Counted(doc.Jobs, "job"), float64(doc.Bytes)/(1<<20))
	for i, script := range doc.Scripts {
		if i == mostScripts {
			text += fmt.Sprintf("%s: %d more\n", what, len(doc.Scripts)-i)
			break
		}
		text += what + ": " + api.Printable(script) + "\n"
	}
	for i := range doc.Left {
		l, where := &doc.Left[i], ""
		if l.Attempt > 0 {
			where = " attempt " + strconv.Itoa(l.Attempt)
		}
		text += fmt.Sprintf("left alone: job %d%s: %s\n", l.Job, where, api.Printable(l.Why))
	}
	return term.WriteText(cmd.OutOrStdout(), text)
}
