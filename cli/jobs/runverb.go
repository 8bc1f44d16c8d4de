package jobs

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// runFlags are the flags of run as given.
type runFlags struct {
	handIn
	once      client.Once
	alone     client.Own // what runs the jobs where no manager serves
	state     string     // folder, of the manager that serves or of our own
	context   string     // host that is to take the jobs; "": none named
	propagate bool
	json      bool
	quiet     bool
	pty       bool          // with a terminal
	idle      time.Duration // after which that ends
	jobsOut   string
	eventsOut string
	report    term.ReportFlags
}

func newRun(alone client.Own) *cobra.Command {
	f := runFlags{alone: alone}
	cmd := &cobra.Command{
		Use:   "run {JOBS.yaml | -- COMMAND ARGUMENTS...}",
		Short: "Run jobs on this machine, as a system decides, and follow them",
		Long: `Runs the jobs of a file, or one command, as processes of this machine: on its
NVIDIA GPUs, or on CPU slots where it has none. The system decides who runs
when, on which of them; a job that is preempted gets SIGTERM, its grace, then
SIGKILL, and starts again when its turn comes (see examples/jobs.yaml and
docs/guide/jobs.md).

Where a manager serves (` + "`trainyard serve`" + `), the jobs are submitted there and
followed. Else, or with flags that say who decides or on what, this command is
their manager: all is kept in the state folder. Ctrl-C, a crash or a kill of
this command harms no job: jobs that run go on, and the same command takes up
where it left off; of -- COMMAND, the one that it says then, with --state. To
end a job, use ` + "`trainyard cancel`" + `.

Exit code: that of a job which failed, from 1 to 125, where it was submitted;
10 says that a job failed.`,
		Example: `  trainyard run --gpus 2 -- python train.py
  trainyard run --gpus 1 --pty -- bash
  trainyard run jobs.yaml --slots 4 --system tiresias-las --set '*.min_run=0'`,
		Args: wantJobs,
		RunE: f.run,
	}
	f.shell.target = func() client.Target {
		if f.own(cmd) != "" {
			return client.Target{State: "."} // of this machine, whichever it will be
		}
		return f.target()
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.state, "state", "", "`FOLDER` that keeps log, output and checkpoints (default: JOBS.state next "+
		"to the file)")
	client.AddContext(cmd, &f.context)
	f.alone.Define(cmd)
	f.handIn.define(cmd)
	f.once.Define(cmd)
	fs.BoolVar(&f.propagate, "propagate", true, "where jobs are submitted: exit with the code of one that failed, "+
		"from 1 to 125")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the table")
	fs.StringVar(&f.jobsOut, "jobs-out", "", "write one row per job to `FILE.csv`")
	fs.StringVar(&f.eventsOut, "events-out", "", "write every event to `FILE.jsonl`: `trainyard replay` reads it")
	f.report.Define(fs)
	fs.BoolVar(&f.pty, "pty", false, "with a terminal, as for a shell; Ctrl-] leaves it, see attach")
	fs.DurationVar(&f.idle, "idle", 30*time.Minute, "with --pty: end once no key was typed, and nothing "+
		"written, so long")
	fs.BoolVar(&f.quiet, "quiet", false, "do not report on stderr what happens")
	return cmd
}

// run submits the jobs where a manager takes them, else runs them to the end.
func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // caught: a reader of our lines that is gone stops no job
	if err := f.once.Check(cmd); err != nil {
		return err
	}
	if f.pty {
		if err := f.terminalKeys(cmd); err != nil {
			return err
		}
	}
	c, err := f.served(cmd)
	switch {
	case err != nil:
		return err
	case f.pty && c == nil:
		return &term.CodedError{Code: term.ExitUnreachable, Err: errors.New("run: --pty needs a manager, and none " +
			"serves; start one by `trainyard serve`")}
	case f.pty:
		defer c.Close()
		return f.runTerminal(cmd, c, args)
	}
	if c != nil {
		defer c.Close()
		return f.runServed(cmd, c, args)
	}
	return f.alone.Run(cmd, args, client.Work{State: f.state, Asked: f.own(cmd), Dry: f.dry, JSON: f.json,
		Quiet: f.quiet, JobsOut: f.jobsOut, EventsOut: f.eventsOut, Report: f.report, Submission: f.submission,
		Warn: func(cmd *cobra.Command, jobs []jobfile.Job) {
			warnMissing(cmd, jobs)
			if !f.quiet {
				fmt.Fprint(cmd.ErrOrStderr(), f.shell.took)
			}
		}})
}
