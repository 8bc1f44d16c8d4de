package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// accountUnused means nothing here.
var accountUnused = unused{"partition/r", "accounts/A", "qos/q", "clusters/M", "units",
	"allocations/X!", "allusers/a!", "duplicates/D!", "noconvert!", "array!", "whole-hetjob", "verbose/v!",
	"local!", "truncate/T!"}

// field is a field of sacct.
type field struct {
	name  string
	width int
	value func(*line) string
}

// fields are those of sacct.
var fields = []field{
	{"JobID", 12, (*line).id},
	{"JobIDRaw", 12, func(l *line) string { return strconv.Itoa(l.ID) }},
	{"JobName", 10, (*line).name},
	{"Partition", 10, fixed(partition)},
	{"Account", 10, func(l *line) string { return l.Group }},
	{"User", 9, func(l *line) string { return l.User }},
	{"State", 10, accountState},
	{"ExitCode", 8, (*line).exit},
	{"DerivedExitCode", 15, (*line).exit},
	{"NodeList", 15, func(l *line) string {
		if nodes := l.nodes(); nodes != "" {
			return nodes
		}
		return "None assigned"
	}},
	{"NNodes", 8, fixed("1")},
	{"AllocTRES", 10, func(l *line) string { return fmt.Sprintf("gres/gpu=%d,node=1", l.width()) }},
	{"ReqTRES", 10, func(l *line) string { return fmt.Sprintf("gres/gpu=%d,node=1", l.Want) }},
	{"Submit", 19, func(l *line) string { return at(l.Submitted, "Unknown") }},
	{"Start", 19, func(l *line) string { return at(l.Started, "Unknown") }},
	{"End", 19, func(l *line) string { return at(l.Ended, "Unknown") }},
	{"Elapsed", 10, func(l *line) string { return clock(time.Duration(l.RunSec*float64(time.Second)), true) }},
	{"ElapsedRaw", 10, func(l *line) string { return strconv.Itoa(int(l.RunSec)) }},
	{"Restarts", 8, func(l *line) string { return strconv.Itoa(max(l.Attempt-1, 0)) }},
	{"Priority", 10, func(l *line) string { return strconv.Itoa(l.priority()) }},
	{"Reason", 22, (*line).reason},
}

// accountState is the state, of what was cancelled with a user, as sacct says it.
func accountState(l *line) string {
	if l.state() == cancelled {
		return "CANCELLED by " + l.userID()
	}
	return l.state().word
}

// accountFlags are the flags of sacct as given.
type accountFlags struct {
	to                                 client.Target
	jobs, users, names, states, format []string
	from, until                        string
	parsable, trailing, noHeader       bool
}

func newSacct() *cobra.Command {
	var f accountFlags
	cmd := &cobra.Command{
		Use:   "sacct",
		Short: "Report on jobs, those that are done too, as Slurm's sacct does",
		Long: `Reports on jobs, those that are done too, as Slurm's sacct does: one line a job,
none for steps. ` + "`trainyard usage`" + ` sums what they took.`,
		Example: `  sacct -j 12 -o JobID,State,ExitCode --parsable2 -n`,
		Args:    term.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := f.fields()
			if err != nil {
				return err
			}
			w, err := newWhich(given{"sacct: -j", f.jobs}, given{"sacct: -u", f.users}, given{"sacct: --name", f.names},
				given{"sacct: -s", f.states})
			if err != nil {
				return err
			}
			w.all = true
			span, err := f.span(time.Now())
			if err != nil {
				return err
			}
			accountUnused.note(cmd)
			return f.to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				lines, failed := w.find(cmd.Context(), c)
				if failed != nil {
					return failed
				}
				return term.WriteText(cmd.OutOrStdout(), f.text(chosen, slices.DeleteFunc(lines, span.lacks)))
			})(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVarP(&f.jobs, "jobs", "j", nil, "`NUMBERS` of jobs, as 12, 12_3 or 12_[0-3], by commas")
	fs.StringArrayVarP(&f.users, "user", "u", nil, "jobs of `USERS`")
	fs.StringArrayVar(&f.names, "name", nil, "jobs with these `NAMES`")
	fs.StringArrayVarP(&f.states, "state", "s", nil, "jobs in `STATES`")
	fs.StringArrayVarP(&f.format, "format", "o", nil, "`FIELDS`, as JobID,State,ExitCode")
	fs.StringVarP(&f.from, "starttime", "S", "", "jobs that were not done at `TIME`, as now-1day, 16:00, 2026-01-31")
	fs.StringVarP(&f.until, "endtime", "E", "", "jobs that were submitted before `TIME`")
	fs.BoolVarP(&f.parsable, "parsable2", "P", false, "fields with | between them")
	fs.BoolVarP(&f.trailing, "parsable", "p", false, "fields with | behind each")
	fs.BoolVarP(&f.noHeader, "noheader", "n", false, "no titles")
	accountUnused.define(fs)
	return cmd
}

// span is a stretch of time; a zero end is open.
type span struct{ from, until time.Time }

// span is the stretch of time that is asked for.
func (f *accountFlags) span(now time.Time) (s span, err error) {
	for _, one := range []struct {
		flag, text string
		into       *time.Time
	}{{"-S", f.from, &s.from}, {"-E", f.until, &s.until}} {
		if one.text == "" {
			continue
		}
		if *one.into, err = task.ParseSlurmMoment(one.text, now, true); err != nil {
			return s, term.Usagef("sacct: %s %w", one.flag, err)
		}
	}
	if !s.until.IsZero() && s.until.Before(s.from) {
		return s, term.Usagef("sacct: -E %s is before -S %s, want it after that", f.until, f.from)
	}
	return s, nil
}

// lacks reports whether a job was done before the stretch, or submitted after it.
func (s span) lacks(l line) bool {
	submitted, _ := time.Parse(time.RFC3339Nano, l.Submitted)
	ended, err := time.Parse(time.RFC3339Nano, l.Ended)
	return err == nil && ended.Before(s.from) || !s.until.IsZero() && submitted.After(s.until)
}

// fields are those that are asked for.
func (f *accountFlags) fields() (chosen []field, err error) {
	names := list(f.format)
	if len(names) == 0 {
		names = []string{"JobID", "JobName", "Partition", "Account", "State", "ExitCode"}
	}
	for _, wanted := range names {
		name, width, sized := strings.Cut(wanted, "%")
		n := len(chosen)
		for _, known := range fields {
			if strings.EqualFold(known.name, name) {
				chosen = append(chosen, known)
			}
		}
		if n == len(chosen) {
			return nil, term.Usagef("sacct: -o %s is not known here, want some of %s", term.ShellWord(name),
				fieldNames())
		}
		if sized {
			if chosen[n].width, err = parseWidth(strings.TrimPrefix(width, "-")); err != nil {
				return nil, term.Usagef("sacct: -o %s%%%s, want NAME%%WIDTH", name, width)
			}
		}
	}
	return chosen, nil
}

func fieldNames() string {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	return strings.Join(names, ", ")
}

// text is what is written of jobs.
func (f *accountFlags) text(chosen []field, lines []line) string {
	var b strings.Builder
	write := func(value func(*field) string) {
		for i := range chosen {
			switch text := api.Printable(value(&chosen[i])); {
			case f.trailing:
				b.WriteString(text + "|")
			case f.parsable && i > 0:
				b.WriteString("|" + text)
			case f.parsable:
				b.WriteString(text)
			default:
				b.WriteString(fill(text, chosen[i].width, chosen[i].name != "JobID") + " ")
			}
		}
		b.WriteByte('\n')
	}
	if !f.noHeader {
		write(func(x *field) string { return x.name })
		if !f.parsable && !f.trailing {
			write(func(x *field) string { return strings.Repeat("-", x.width) })
		}
	}
	for i := range lines {
		write(func(x *field) string { return x.value(&lines[i]) })
	}
	return b.String()
}
