package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/strictyaml"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/sched"
)

// handIn are the flags and arguments that say which jobs are meant: those of a file, or one command.
type handIn struct {
	gpus    string
	name    string
	preempt string
	dry     bool
	shell   shell
	keys    keyed
}

// define adds the flags.
func (f *handIn) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.gpus, "gpus", "1", "`N` GPUs or slots for the command, or MIN-MAX where it may be resized")
	fs.StringVar(&f.name, "name", "", "`NAME` of the command's job (default: that of its program)")
	fs.StringVar(&f.preempt, "preemptible", "", "`WORD`: whether the command may be stopped for others: after-save "+
		"(once something shows that it saves, the default), true or false")
	term.CompleteFlag(cmd, "preemptible", term.OneOf(sched.PreemptibleWords))
	f.keys.define(cmd)
	offerKeys(cmd, func() client.Target { return f.shell.target() })
	f.shell.define(cmd)
	fs.BoolVar(&f.dry, "dry-run", false, "only say what would become of it")
}

// wantJobs wants a job file, or a command behind --.
func wantJobs(cmd *cobra.Command, args []string) error {
	at := cmd.ArgsLenAtDash()
	switch {
	case at < 0 && len(args) == 1:
		return refuseProgram(cmd, args[0])
	case at == 0 && len(args) > 0:
		return nil
	case at < 0 || len(args) == 0:
		return term.Usagef("%s: %s, want JOBS.yaml, or -- COMMAND ARGUMENTS...%s; see `%s --help`", term.OwnName(cmd),
			term.Counted(len(args), "argument"), behindDashes(cmd, args), cmd.CommandPath())
	}
	return term.Usagef("%s: want JOBS.yaml or -- COMMAND ARGUMENTS..., not both; see `%s --help`", term.OwnName(cmd),
		cmd.CommandPath())
}

// isCommand reports whether the arguments are a command.
func isCommand(cmd *cobra.Command) bool { return cmd.ArgsLenAtDash() == 0 }

// submission returns the jobs that are meant. A mistake is reported here, with its line, before anybody is asked.
func (f *handIn) submission(cmd *cobra.Command, args []string) (s api.Submission, err error) {
	text, name := []byte(nil), args[0]
	if isCommand(cmd) {
		return f.inline(cmd, args)
	}
	switch {
	case anyChanged(cmd, "gpus", "name", "preemptible"):
		return s, term.Usagef("%s: --gpus, --name and --preemptible are for a command; those of %s stand in it",
			term.OwnName(cmd), args[0])
	case len(f.keys.names(cmd)) > 0:
		return s, term.Usagef("%s: --%s is for a command; the jobs of %s have the key of it", term.OwnName(cmd),
			f.keys.names(cmd)[0], args[0])
	case anyChanged(cmd, "env", "env-file", "no-env"):
		return s, term.Usagef("%s: --env, --env-file and --no-env are for a command; the jobs of %s have env and "+
			"inherit_env", term.OwnName(cmd), args[0])
	case name == "-":
		name = "standard input"
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), jobfile.MaxFile+1))
	default:
		text, err = strictyaml.ReadFile(args[0], jobfile.MaxFile)
	}
	if err != nil {
		return s, err
	}
	jobs, err := jobfile.ParseJobs(text, name)
	if err != nil {
		return s, term.Malformed(err)
	}
	warnMissing(cmd, jobs)
	s = api.Submission{File: string(text), Env: f.shell.passed(), Dry: f.dry}
	if s.Scripts, err = f.shell.scripts(cmd, jobs); err != nil {
		return s, err
	}
	if slices.ContainsFunc(jobs, func(j jobfile.Job) bool { return j.Inherit }) {
		if s.Inherit, err = f.shell.taken(cmd); err != nil {
			return s, err
		}
	}
	if s.Dir, err = os.Getwd(); err == nil && args[0] != "-" {
		s.Dir, err = filepath.Abs(filepath.Dir(args[0]))
	}
	return s, err
}

// anyChanged reports whether one of some flags was given.
func anyChanged(cmd *cobra.Command, flags ...string) bool {
	return slices.ContainsFunc(flags, cmd.Flags().Changed)
}

// inline is the command as a job file. What is wrong with it is said in words of the command line.
func (f *handIn) inline(cmd *cobra.Command, args []string) (s api.Submission, err error) {
	verb := term.OwnName(cmd)
	gpus, err := parseWidths(verb+": --gpus", f.gpus)
	if err != nil {
		return s, err
	}
	name, err := f.called(cmd, args[0])
	if err != nil {
		return s, err
	}
	if s.Dir, err = os.Getwd(); err != nil {
		return s, err
	}
	if _, err = jobfile.Inline(args, gpus, name, s.Dir); err != nil {
		return s, term.Usagef("%s: %s", verb, asFlags.Replace(strings.TrimPrefix(err.Error(), "jobfile: ")))
	}
	job := map[string]any{"command": args, "gpus": map[string]any{"min": gpus.Min, "max": gpus.Max,
		"default": gpus.Want}}
	if name != "" {
		job["name"] = name
	}
	if cmd.Flags().Changed("preemptible") {
		if _, known := sched.ParsePreemptible(f.preempt); !known {
			return s, term.Usagef("%s: --preemptible %s, want %s", verb, term.ShellWord(f.preempt),
				strings.Join(sched.PreemptibleWords(), ", "))
		}
		job["preemptible"] = f.preempt
	}
	f.keys.set(cmd, job)
	if bad := inAll(cmd, job, int(gpus.Want)); bad != nil {
		return s, bad
	}
	if s.Inherit, err = f.shell.taken(cmd); err != nil {
		return s, err
	}
	if s.Inherit != nil {
		job["inherit_env"] = true
	} else {
		s.Env = f.shell.passed()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b) // JSON is YAML
	e.SetEscapeHTML(false)
	err = e.Encode(map[string]any{"jobs": []any{job}})
	if err != nil {
		return s, err
	}
	jobs, err := jobfile.ParseJobs(b.Bytes(), filepath.Join(s.Dir, "command"))
	if err != nil {
		return s, term.Usagef("%s: %s", verb, ofFlags(cmd, err))
	}
	if s.Scripts, err = f.shell.scripts(cmd, jobs); err != nil {
		return s, err
	}
	warnMissing(cmd, jobs)
	s.File, s.Dry = b.String(), f.dry
	return s, nil
}

// called is the name of the command's job: what is given, else by its program.
func (f *handIn) called(cmd *cobra.Command, program string) (string, error) {
	switch name := nameOf(program); {
	case f.name != "":
		return f.name, nil
	case cmd.Flags().Changed("name"):
		return "", term.Usagef("%s: --name \"\", want 1 to %d letters, digits, dots, _ and -", term.OwnName(cmd),
			jobfile.MaxName)
	case jobfile.IsNumber(name): // the program's name may be one, that of a job not
		return "job-" + name[max(0, len(name)+len("job-")-jobfile.MaxName):], nil
	default:
		return name, nil
	}
}

// asFlags says of keys of a job file which flags they are.
var asFlags = strings.NewReplacer("name \"", "--name \"", "command[0]", "the command", "command[", "argument [")

// nameOf is the name of a command's job that has no other: that of its program, as far as it may be one.
func nameOf(program string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z') {
			return r
		}
		return '-'
	}, filepath.Base(program))
	for strings.Contains(name, "..") {
		name = strings.ReplaceAll(name, "..", ".")
	}
	return strings.Trim(name[:min(len(name), jobfile.MaxName)], "._-")
}

// submitFlags are the flags of submit as given.
type submitFlags struct {
	handIn
	to   client.Target
	once client.Once
	json bool
	held bool
}

func newSubmit() *cobra.Command {
	var f submitFlags
	f.shell.target = func() client.Target { return f.to }
	cmd := &cobra.Command{
		Use:   "submit {JOBS.yaml | - | -- COMMAND ARGUMENTS...}",
		Short: "Submit jobs, and leave",
		Long: `Hands the jobs of a file, of standard input, or one command to the manager of
this machine (` + "`trainyard serve`" + `). They are durable when it returns: neither a
crash nor a power cut loses them. It prints their numbers.

Where no manager answers it asks again for 30 s (--patience), also the next one:
the jobs are submitted once, by a key. Exit code 11 says that it is not known
whether they were; the command that it prints asks again.

A command runs in this folder, with the variables of this shell. They are kept
apart from the log, which others may read. Through a context of another machine
it inherits none. ` + "`trainyard run`" + ` does the same and follows.`,
		Example: `  trainyard submit --gpus 2 -- python train.py --epochs 10
  trainyard submit jobs.yaml`,
		Args: wantJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.once.Check(cmd); err != nil {
				return err
			}
			s, err := f.submission(cmd, args)
			if err != nil {
				return err
			}
			s.Paused = f.held
			f.once.Await(cmd, &f.to)
			return f.to.Changing(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				return f.submit(cmd, c, &s, args)
			})(cmd, args)
		},
	}
	cmd.Flags().SortFlags = false
	f.to.AddFlags(cmd)
	f.define(cmd)
	f.once.Define(cmd)
	cmd.Flags().BoolVar(&f.held, "paused", false, "hold the jobs from the start, until they are resumed")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON document instead of the numbers")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		unknown := (*pflag.NotExistError)(nil)
		if errors.As(err, &unknown) && unknown.GetSpecifiedName() == "hold" { // Slurm's word
			return term.Usagef("submit: --hold is called --paused here; `trainyard resume` lets the jobs wait for " +
				"their turn")
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

func (f *submitFlags) submit(cmd *cobra.Command, c *api.Client, s *api.Submission, args []string) error {
	doc, err := f.once.Submit(cmd, &f.to, c, s, args)
	if err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), doc)
	}
	if f.dry {
		return term.WriteText(cmd.OutOrStdout(), planText(&doc, term.WidthOf(cmd.OutOrStdout()), time.Now()))
	}
	var b strings.Builder
	for i := range doc.Jobs {
		fmt.Fprintln(&b, doc.Jobs[i].ID)
	}
	if err := term.WriteText(cmd.OutOrStdout(), b.String()); err != nil {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), f.shell.took)
	fmt.Fprintf(cmd.ErrOrStderr(), "%s submitted; `trainyard ps%s` lists them\n%s", term.Counted(len(doc.Jobs), "job"),
		f.to.Flag(), f.arrayNote(cmd, &doc)+f.sameNames(cmd, &doc)+jobNotes(&doc))
	noteStart(cmd, c, doc.Jobs)
	return nil
}

// arrayNote says what names the tasks of an array that was submitted as a command.
func (f *submitFlags) arrayNote(cmd *cobra.Command, doc *api.Submitted) string {
	if !isCommand(cmd) || !cmd.Flags().Changed("array") || len(doc.Jobs) == 0 || doc.Jobs[0].ID < 0 {
		return ""
	}
	first := doc.Jobs[0].ID
	return fmt.Sprintf("array %d: %d_* names its tasks, `trainyard cancel%s %d_*` ends them\n", first, first,
		f.to.Flag(), first)
}

// jobNotes says what submitters may not expect, a line for all jobs in a row of which it is true.
func jobNotes(doc *api.Submitted) string {
	var b strings.Builder
	for i := 0; i < len(doc.Jobs); {
		end := i + 1
		for end < len(doc.Jobs) && slices.Equal(doc.Jobs[end].Notes, doc.Jobs[i].Notes) {
			end++
		}
		who := fmt.Sprintf("job %d", doc.Jobs[i].ID)
		if end-i > 1 {
			who = fmt.Sprintf("jobs %d to %d: each", doc.Jobs[i].ID, doc.Jobs[end-1].ID)
		}
		for _, note := range doc.Jobs[i].Notes {
			fmt.Fprintf(&b, "%s %s\n", who, note)
		}
		i = end
	}
	return b.String()
}

// sameNames says which jobs have the names of others, unless they are called after their program: who gives no names
// goes by numbers.
func (f *handIn) sameNames(cmd *cobra.Command, doc *api.Submitted) string {
	if cmd.ArgsLenAtDash() == 0 && f.name == "" {
		return ""
	}
	return sameNames(doc)
}

// sameNames says which jobs have the names of others, which are known by their numbers from now on.
func sameNames(doc *api.Submitted) string {
	const most = 3
	var b strings.Builder
	n := 0
	for i := range doc.Jobs {
		j := &doc.Jobs[i]
		if j.Older == nil {
			continue
		}
		if n++; n <= most {
			fmt.Fprintf(&b, "job %d is called %s already: the name means job %d from now on\n", *j.Older, j.Name, j.ID)
		}
	}
	if n > most {
		fmt.Fprintf(&b, "so it is with %s\n", term.Counted(n-most, "more name"))
	}
	return b.String()
}

// planText says what is expected of jobs.
func planText(doc *api.Submitted, width int, now time.Time) string {
	t := term.Table{Left: 1}
	t.Add("name", "starts", "ends")
	for i := range doc.Jobs {
		j := &doc.Jobs[i]
		t.Add(j.Name, within(j.Start, now), within(j.End, now))
	}
	if doc.Rests == "" || !slices.ContainsFunc(doc.Jobs, func(j api.Estimate) bool { return known(j.Start) }) {
		return t.Text(width)
	}
	return t.Text(width) + "\n" + term.Wrap("These hold in 8 of 10 cases, and rest on "+doc.Rests+".", width, 2) + "\n"
}

// known reports whether there is an idea of when something happens.
func known(w *api.Within) bool { return w != nil && (w.Known || w.Low != "") }

// isAlone reports whether there is an idea that holds if no one else comes.
func isAlone(w *api.Within) bool { return known(w) && w.Alone && w.Low != "" }

// within writes an interval of time from now for people, as exactly as it is known: "in 1 to 3 h (14:10 to 16:20)".
func within(w *api.Within, now time.Time) string {
	switch {
	case w == nil:
		return "unknown"
	case !known(w):
		return "no idea yet"
	case isAlone(w):
		return interval(w, now) + " if no one else comes"
	}
	return interval(w, now)
}

// interval is within for an interval that is known.
func interval(w *api.Within, now time.Time) string {
	high, known := until(w.High, now)
	if _, since := until(w.Low, now); !known || !since || high < time.Second {
		return fromNow(w, now)
	}
	from, to := clock(w.Low, now, high), clock(w.High, now, high)
	if from == to {
		return fromNow(w, now) + " (" + to + ")"
	}
	return fromNow(w, now) + " (" + from + " to " + to + ")"
}

// fromNow is interval without the times of day.
func fromNow(w *api.Within, now time.Time) string {
	low, lowKnown := until(w.Low, now)
	high, highKnown := until(w.High, now)
	switch {
	case !lowKnown:
		return "unknown"
	case !highKnown && low < time.Second:
		return "at once or any time later"
	case !highKnown:
		n, unit := rough(low, low)
		return fmt.Sprintf("in %d %s or later (from %s)", n, unit, clock(w.Low, now, low))
	case high < time.Second:
		return "at once"
	}
	least, unit := rough(low, high)
	most, _ := rough(high, high)
	switch {
	case least == most:
		return fmt.Sprintf("in about %d %s", most, unit)
	case least == 0:
		return fmt.Sprintf("within %d %s", most, unit)
	}
	return fmt.Sprintf("in %d to %d %s", least, most, unit)
}

// until returns how far away a time is, 0 if it is over; false if it is none.
func until(text string, now time.Time) (time.Duration, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return max(t.Sub(now), 0), err == nil
}

// rough counts d in the unit that suits a longer one.
func rough(d, longer time.Duration) (n int, unit string) {
	const day = 24 * time.Hour
	for _, u := range []struct {
		size time.Duration
		word string
	}{{day, "days"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if longer >= 2*u.size {
			return int(d.Round(u.size) / u.size), u.word
		}
	}
	return int(d.Round(time.Second) / time.Second), "s"
}

// clock writes a time of day, with seconds where the times to be written lie within two minutes, with its date where
// that is another.
func clock(text string, now time.Time, within time.Duration) string {
	t, _ := time.Parse(time.RFC3339Nano, text) // checked before
	layout := "15:04"
	switch t = t.Local(); {
	case t.Format(time.DateOnly) != now.Local().Format(time.DateOnly):
		layout = "2 Jan 15:04"
	case within < 2*time.Minute:
		layout = time.TimeOnly
	}
	return t.Format(layout)
}

// waitFor returns how jobs stand once they are done. Names that no one has are reported first, before any job is waited
// for.
func waitFor(ctx context.Context, c *api.Client, names []string) (docs []api.Job, err error) {
	ids := make([]string, len(names))
	for i, name := range names {
		doc, err := c.Job(ctx, name)
		if err != nil {
			return nil, err
		}
		ids[i] = strconv.Itoa(doc.ID) // a later job may have its name
	}
	for _, id := range ids {
		doc, err := c.Wait(ctx, id)
		if err != nil {
			return docs, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// jobExit is the exit code that says how a job ended: its own where it failed with one that a shell can pass on.
func jobExit(j *api.Job, propagate bool) error {
	switch {
	case j.Outcome == "finished":
		return nil
	case j.Outcome == "failed" && propagate && 0 < j.ExitCode && j.ExitCode < 126:
		return &term.CodedError{Code: j.ExitCode, Err: fmt.Errorf("%s failed with %s", client.JobTitle(j),
			failedText(j))}
	case j.Outcome == "failed":
		return &term.CodedError{Code: term.ExitJobFailed,
			Err: fmt.Errorf("%s failed with %s", client.JobTitle(j), failedText(j))}
	}
	return &term.CodedError{Code: term.ExitJobFailed, Err: fmt.Errorf("%s was %s", client.JobTitle(j), j.Outcome)}
}

// failedText is what is known of a failure, with the last line that the job wrote.
func failedText(j *api.Job) string {
	f := j.Failure
	if f == nil {
		return fmt.Sprintf("exit code %d", j.ExitCode)
	}
	text := api.Printable(f.Text)
	if j.Attempt > 1 {
		text += fmt.Sprintf(" in attempt %d", j.Attempt)
	}
	for _, line := range slices.Backward(f.Tail) {
		if line = strings.TrimSpace(api.Printable(line)); line != "" {
			return text + "; it wrote last: " + line
		}
	}
	return text
}
