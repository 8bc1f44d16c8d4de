package client

import (
	"github.com/spf13/cobra"
	"github.com/trainyard/trainyard/cli/term"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// Own is a manager of a command's own: what runs the jobs of `trainyard run` where no manager serves.
type Own interface {
	// Define adds the flags that say who decides, and on what.
	Define(cmd *cobra.Command)
	// Run runs jobs to their end.
	Run(cmd *cobra.Command, args []string, w Work) error
}

// Work is what a manager of a command's own is asked for: by the arguments, a job file or a command behind --, and by
// flags.
type Work struct {
	State              string // folder; "": one named after the jobs
	Asked              string // flag that asks for a manager of the command's own; "": none does
	Dry, JSON, Quiet   bool
	JobsOut, EventsOut string
	Report             term.ReportFlags

	Submission func(cmd *cobra.Command, args []string) (api.Submission, error) // reads the jobs that are meant
	Warn       func(cmd *cobra.Command, jobs []jobfile.Job)                    // warns of what is not there
}
