package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api/server"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/access"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/sched"
	"github.com/trainyard/trainyard/system"
)

// Own is a manager that a command is itself, for the jobs that it runs.
type Own struct {
	runsOn
	work client.Work
}

var _ client.Own = (*Own)(nil)

// Run runs jobs to their end.
func (f *Own) Run(cmd *cobra.Command, args []string, w client.Work) error {
	f.work, f.state = w, w.State
	if err := term.OnLinux("run as the manager of its jobs"); err != nil {
		return err
	}
	o, err := f.options(cmd, args)
	if err != nil {
		return err
	}
	if f.work.Dry {
		return term.WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s on %s under %s; state in %s\n",
			term.Counted(len(o.Jobs.Jobs), "job"), o.Place, o.System, o.Dir))
	}
	err = notOurs(access.CheckFolder(o.Dir))
	if err != nil {
		return err
	}
	meter := server.NewMeter()
	o.Sinks, o.Decided = append(o.Sinks, meter), meter.Decided
	m, quiet, err := opened(cmd.Context(), &o, "", true)
	if err != nil {
		return err
	}
	defer quiet()
	f.alone(cmd, o.Dir)
	if m.Resumed() && !f.work.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %s\n", resumedText(m.Board().Rows(), len(o.Jobs.Jobs), o.Dir))
	}
	header := m.Header()
	f.warn(cmd, o.Jobs, &header)
	if !m.Resumed() {
		f.work.Warn(cmd, o.Jobs.Jobs)
	}
	_, stop, err := listen(m, meter, &o, access.Options{}, false)
	if err != nil {
		return err
	}
	defer stop()
	err = m.Run(cmd.Context())
	if errors.Is(err, context.Canceled) {
		return f.detached(cmd, m, args, o.Dir)
	}
	if err != nil {
		return err
	}
	return f.report(cmd, m, o.Dir)
}

// alone says that this command is the manager of its jobs although another folder is named, or no one serves that of
// the user.
func (f *Own) alone(cmd *cobra.Command, dir string) {
	named := os.Getenv(client.StateVariable)
	if f.work.Quiet || f.state != "" || named == "" {
		return
	}
	why := "no trainyard serves " + named
	then := "to hand jobs in there, start `trainyard serve` first"
	if flag := f.work.Asked; flag != "" {
		why, then = "--"+flag+" asks for a manager of its own",
			"without it they are submitted where "+named+" is served"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %s: this command runs its jobs itself, in %s; %s\n", why, dir, then)
}

// resumedText says what a folder that was started before has.
func resumedText(rows []host.Row, jobs int, dir string) string {
	done, live := 0, 0
	for i := range rows {
		switch {
		case rows[i].State == sched.Done:
			done++
		case rows[i].Attempt != sched.NoAttempt && rows[i].Attempt != sched.Ended:
			live++
		}
	}
	if done == jobs {
		return fmt.Sprintf("all jobs of %s are over; to run them again remove the folder, or give --state another", dir)
	}
	return fmt.Sprintf("going on with %s: %d of %s done, %d running when it was left", dir, done,
		term.Counted(jobs, "job"), live)
}

// warn says what a job file asks for and no one sees to.
func (f *Own) warn(cmd *cobra.Command, jobs *jobfile.File, h *eventlog.Header) {
	counts := slices.ContainsFunc(jobs.Jobs, func(j jobfile.Job) bool {
		return j.Spec.CPUs > 0 || j.Spec.MemoryGB > 0
	})
	if f.work.Quiet {
		return
	}
	left, against, leave := 0, 0, system.Leaves(h)
	for i := range jobs.Jobs {
		if s := &jobs.Jobs[i].Spec; leave.Protects(&sched.Job{Spec: s, Evidence: sched.DeclaredBy(s)}) {
			left++
		}
		if jobs.Jobs[i].Spec.Preempt == sched.NeverPreempt {
			against++
		}
	}
	if against > 0 && len(jobs.Jobs) > 1 && system.StopsAny(h) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %d of %s may be stopped for others although they say preemptible: "+
			"false, which plays no part under unsaved=stop\n", against, term.Counted(len(jobs.Jobs), "job"))
	}
	if left > 0 && len(jobs.Jobs) > 1 {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: %d of %s will not be stopped for others until they are "+
			"seen to save\n",
			left, term.Counted(len(jobs.Jobs), "job"))
	}
	if counts && !manager.CanLimit() {
		fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: "+manager.NoLimits)
	}
}

// options are what a manager of our own is given.
func (f *Own) options(cmd *cobra.Command, args []string) (manager.Options, error) {
	o, err := f.runsOn.options(cmd.Context(), cmd)
	if err != nil {
		return o, err
	}
	err = f.jobs(cmd, args, &o)
	if err != nil {
		return o, err
	}
	o.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	err = cmp.Or(refused(o.Check(cmd.Context())), f.checkOut(args[0]))
	if err != nil {
		return o, err
	}
	if isCommand(cmd) && f.state == "" && !f.work.Dry {
		if o.Dir, err = newFolder(strings.TrimSuffix(o.Dir, stateSuffix)); err != nil {
			return o, err
		}
	}
	if !f.work.Quiet {
		o.Sinks = []eventlog.Sink{newFollower(cmd.ErrOrStderr(), f.unit, o.Dir)}
	}
	return o, nil
}

// stateSuffix ends the name of a state folder that no one named.
const stateSuffix = ".state"

// newFolder makes a state folder that no one else has: name.state or, where there are such already, name-2.state,
// name-3.state and so on.
func newFolder(name string) (dir string, err error) {
	dir = name + stateSuffix
	for n := 2; ; n++ {
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, os.ErrExist) {
			return dir, err
		}
		dir = fmt.Sprintf("%s-%d%s", name, n, stateSuffix)
	}
}

// jobs are those to be run, and the folder in which all is kept: next to the file, or for a command one of the time,
// which newFolder makes.
func (f *Own) jobs(cmd *cobra.Command, args []string, o *manager.Options) (err error) {
	o.Dir = f.state
	if !isCommand(cmd) {
		if o.Jobs, err = jobfile.Read(args[0]); err != nil {
			return jobFileError(err)
		}
		if slices.ContainsFunc(o.Jobs.Jobs, func(j jobfile.Job) bool { return j.Inherit }) {
			s, bad := f.work.Submission(cmd, args)
			if o.Inherit = s.Inherit; bad != nil {
				return bad
			}
		}
		o.Dir = cmp.Or(o.Dir, strings.TrimSuffix(args[0], filepath.Ext(args[0]))+stateSuffix)
		return nil
	}
	s, err := f.work.Submission(cmd, args)
	if err != nil {
		return err
	}
	o.Inherit = s.Inherit
	if o.Jobs, err = jobfile.Parse([]byte(s.File), "command"); err != nil || o.Dir != "" {
		return err
	}
	o.Dir = o.Jobs.Jobs[0].Spec.Name + "-" + time.Now().Format("20060102-150405") + stateSuffix
	return nil
}

// checkOut tries the files to be written once the jobs are done, so that a wrong name is found before anything runs.
func (f *Own) checkOut(jobs string) error {
	if err := f.work.Report.Check(); err != nil {
		return err
	}
	if r := f.work.Report.Path; r != "" && (r == f.work.JobsOut || r == f.work.EventsOut) {
		return term.Usagef("--report and another flag both write %s, want two files", r)
	}
	for _, w := range []term.PathUse{{What: "--jobs-out", Path: f.work.JobsOut},
		{What: "--events-out", Path: f.work.EventsOut}, {What: "--report", Path: f.work.Report.Path}} {
		switch {
		case w.Path == "":
			continue
		case term.SamePath(w.Path, jobs):
			return term.Usagef("%s %s: that is the job file that is read, want another file to write", w.What, w.Path)
		case w.What == "--events-out" && f.work.JobsOut != "" && term.SamePath(w.Path, f.work.JobsOut):
			return term.Usagef("--jobs-out and --events-out both write %s, want two files", w.Path)
		}
		if info, err := os.Stat(w.Path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			continue // a pipe is opened once, when there is something to write
		}
		out, err := term.CreateOut(w.Path)
		if err != nil {
			return err
		}
		out.Discard()
	}
	return nil
}

// jobFileError gives an error about the job file its exit code.
func jobFileError(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return err
	}
	return term.Malformed(err)
}

// detached says what goes on without us, and how it is taken up: a command for which we made a folder must hear
// which.
func (f *Own) detached(cmd *cobra.Command, m *manager.Manager, args []string, dir string) error {
	by := "the same command takes"
	if isCommand(cmd) && f.state == "" {
		by = "the command above takes"
		fmt.Fprintln(cmd.ErrOrStderr(), again(cmd, args, dir)) // not in the error, of which blanks are made one
	}
	return &term.CodedError{Code: term.ExitInterrupted,
		Err: fmt.Errorf("interrupted; jobs that go on running: %d, nothing new starts; %s up %s again",
			alive(m.Board().Rows()), by, dir)}
}

// again is the command line that takes up the state folder of a command, for a shell.
func again(cmd *cobra.Command, args []string, dir string) string {
	words := strings.Fields(cmd.CommandPath())
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			words = append(words, term.ShellWord("--"+flag.Name+"="+v))
		}
	})
	words = append(words, term.ShellWord("--state="+dir), "--")
	for _, arg := range args {
		words = append(words, term.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// report says how the jobs ended, and fails if one did.
func (f *Own) report(cmd *cobra.Command, m *manager.Manager, dir string) error {
	result, jobs := m.Result()
	rows := m.Board().Rows()
	if err := f.write(cmd, m, jobs); err != nil {
		return err
	}
	var err error
	if f.work.JSON {
		err = term.WriteJSON(cmd.OutOrStdout(), newRunDoc(&result, jobs, rows))
	} else {
		err = term.WriteText(cmd.OutOrStdout(), runText(&result, jobs, rows, f.unit, term.WidthOf(cmd.OutOrStdout()))+
			outputText(len(jobs), dir))
	}
	return cmp.Or(err, failures(jobs))
}

// write writes the files that were asked for.
func (f *Own) write(cmd *cobra.Command, m *manager.Manager, jobs []metrics.Job) error {
	err := writeFile(f.work.JobsOut, func(w io.Writer) error {
		_, err := io.WriteString(w, term.JobColumns)
		return cmp.Or(err, term.WriteJobRows(w, f.system, jobs))
	})
	err = cmp.Or(err, writeFile(f.work.EventsOut, m.WriteLog))
	if err != nil {
		return err
	}
	out, err := f.work.Report.Create()
	if out == nil || err != nil {
		return err
	}
	defer out.Discard()
	var log bytes.Buffer
	if err := m.WriteLog(&log); err != nil {
		return err
	}
	var stderr io.Writer
	if !f.work.Quiet {
		stderr = cmd.ErrOrStderr()
	}
	// not the command line, which may be that of a job
	return inputs.CommitRecorded(out, &log, "the log", nil, stderr)
}

// writeFile writes a file whole or not at all; without a path it does nothing.
func writeFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	out, err := term.CreateOut(path)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := write(out); err != nil {
		return err
	}
	return out.Commit()
}

// failures is the error of a run in which jobs failed, or for which there was never room.
func failures(jobs []metrics.Job) error {
	var failed, left []string
	for i := range jobs {
		switch jobs[i].Outcome {
		case sched.Failed:
			failed = append(failed, jobs[i].Name)
		case sched.NoOutcome:
			left = append(left, jobs[i].Name)
		}
	}
	if len(failed) > 0 {
		return &term.CodedError{Code: term.ExitJobFailed,
			Err: fmt.Errorf("%s failed: %s", term.Counted(len(failed), "job"), strings.Join(failed, ", "))}
	}
	if len(left) > 0 {
		return fmt.Errorf("%s could not be run for want of GPUs or slots: %s", term.Counted(len(left), "job"),
			strings.Join(left, ", "))
	}
	return nil
}

// isCommand reports whether the arguments are a command.
func isCommand(cmd *cobra.Command) bool { return cmd.ArgsLenAtDash() == 0 }
