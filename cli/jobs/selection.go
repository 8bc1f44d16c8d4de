package jobs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// selection is the jobs that a verb is about: those of its arguments, or those that flags select, or those of both.
type selection struct {
	user   string
	status []string
	all    bool
	yes    bool
	done   bool // jobs that are done are meant as well by patterns, and by no flag but --status
}

// selectHelp says how jobs are selected, for the help of verbs.
const selectHelp = `
JOB is a number or a name, 12_3 for a task of array 12, 12_[0-9] for several,
12_* or its name for all of them (NAME_[0-9] and NAME_* as well), or @GROUP for
the jobs of a group that are not done.`

// define adds the flags.
func (s *selection) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&s.user, "user", "u", "", "only jobs of `USER`")
	fs.StringSliceVar(&s.status, "status", nil, "only jobs with one of `STATES`: held, waiting, starting, running, "+
		"stopping,\nfinished, failed, cancelled, rejected")
	fs.BoolVar(&s.all, "all", false, "all jobs that are not done")
	fs.BoolVarP(&s.yes, "yes", "y", false, "do not ask where several jobs are selected")
	term.CompleteFlag(cmd, "status", term.ListOf(func() []string { return append(outcomes, unfinished...) }))
}

var outcomes = []string{"finished", "failed", "cancelled", "rejected"}

// check wants at least one job, or a flag that selects some.
func (s *selection) check(cmd *cobra.Command, args []string) error {
	for _, word := range s.status {
		if !slices.Contains(unfinished, word) && !slices.Contains(outcomes, word) {
			return term.Usagef("%s: --status %s, want some of %s, %s", term.OwnName(cmd), term.ShellWord(word),
				strings.Join(unfinished, ", "), strings.Join(outcomes, ", "))
		}
	}
	switch {
	case s.filters() && s.all:
		return term.Usagef("%s: --all next to --user or --status, want one of them", term.OwnName(cmd))
	case s.all && len(args) > 0:
		return term.Usagef("%s: --all next to %s, want one of them", term.OwnName(cmd), term.ShellWord(args[0]))
	case s.all || s.filters():
		return plainly(cmd, args...)
	}
	return cmp.Or(jobs(cmd, args), plainly(cmd, args...))
}

// filters reports whether a flag selects some of the jobs.
func (s *selection) filters() bool { return s.user != "" || len(s.status) > 0 }

// pick returns what names the jobs that are meant, each once. Where several were selected otherwise than by naming
// each, their user is asked first.
func (s *selection) pick(cmd *cobra.Command, c *api.Client, args []string) ([]string, error) {
	if !s.all && !s.filters() && !slices.ContainsFunc(args, func(arg string) bool {
		return isPattern(arg) || isNone(cmd.Context(), c, arg)
	}) {
		return args, nil
	}
	list, err := c.Jobs(cmd.Context(), api.Filter{})
	if err != nil {
		return nil, err
	}
	var picked []string
	there := make(map[string]bool)
	put := func(job string) {
		if !there[job] {
			there[job], picked = true, append(picked, job)
		}
	}
	if len(args) == 0 {
		args = []string{""}
	}
	for _, arg := range args {
		found, bad := s.match(list.Jobs, arg)
		if bad != nil {
			return nil, bad
		}
		for _, job := range found {
			put(job)
		}
	}
	if len(picked) == 0 {
		return nil, &term.CodedError{Code: term.ExitNotFound, Err: fmt.Errorf("%s: %w that %s selects",
			term.OwnName(cmd), api.ErrNoJob, s.text(args))}
	}
	return picked, s.ask(cmd, picked)
}

// text is what selects, for errors.
func (s *selection) text(args []string) string {
	words := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "" })
	if s.user != "" {
		words = append(words, "--user "+s.user)
	}
	if len(s.status) > 0 {
		words = append(words, "--status "+strings.Join(s.status, ","))
	}
	if s.all {
		words = append(words, "--all")
	}
	return strings.Join(words, " ")
}

// isPattern reports whether an argument may stand for several jobs, or for a task of an array.
func isPattern(arg string) bool {
	of, tasks, is := cutTasks(arg)
	return strings.HasPrefix(arg, "@") || is && (jobfile.IsNumber(of) || isSeveral(tasks))
}

// cutTasks splits 12_3 or sweep_[0-9] into an array and its tasks.
func cutTasks(arg string) (of, tasks string, is bool) {
	at := strings.LastIndexByte(arg, '_')
	if at < 1 {
		return "", "", false
	}
	return arg[:at], arg[at+1:], true
}

// isSeveral reports whether tasks are given as no name of a job ends.
func isSeveral(tasks string) bool { return tasks == "*" || strings.HasPrefix(tasks, "[") }

// isNone reports whether an argument is a name that no job has: it may be that of an array.
func isNone(ctx context.Context, c *api.Client, arg string) bool {
	if jobfile.IsNumber(arg) {
		return false
	}
	_, err := c.Job(ctx, arg)
	return errors.Is(err, api.ErrNoJob)
}

// arrayNamed returns the first task of the one array of a name that has tasks which are not done, or if none has of the
// latest that is done. It is false if no array has the name, or a job has.
func arrayNamed(list []api.Job, name string) (first int, found bool, err error) {
	open := false
	for i := range list {
		j := &list[i]
		if j.Name == name {
			return 0, false, nil
		}
		if arrayName(j) != name {
			continue
		}
		goes := j.State != "done"
		if found && open && goes && first != j.Array.First {
			bad := fmt.Errorf("%q: arrays %d and %d have that name; want one by its number, as %d_*", name, first,
				j.Array.First, j.Array.First)
			return 0, false, &term.CodedError{Code: term.ExitConflict, Err: bad}
		}
		if !open || goes {
			first, found, open = j.Array.First, true, open || goes
		}
	}
	return first, found, nil
}

// match returns the jobs of a list that an argument stands for; "" = all that the flags select.
func (s *selection) match(list []api.Job, arg string) (found []string, err error) {
	fits, open, err := s.meaning(list, arg)
	if err != nil || fits == nil {
		return []string{arg}, err
	}
	for i := range list {
		if j := &list[i]; fits(j) && (!open || j.State != "done") && s.passes(j) {
			found = append(found, strconv.Itoa(j.ID))
		}
	}
	return found, nil
}

// passes reports whether a job is one of those that flags narrow the jobs down to.
func (s *selection) passes(j *api.Job) bool {
	return (s.user == "" || s.user == j.User) && (len(s.status) == 0 || slices.Contains(s.status, jobState(j)))
}

// meaning returns which jobs an argument may stand for, and whether those that are done are not meant; nil: the server
// knows what it names.
func (s *selection) meaning(list []api.Job, arg string) (fits func(*api.Job) bool, open bool, err error) {
	if arg == "" {
		return func(*api.Job) bool { return true }, len(s.status) == 0, nil
	}
	open = len(s.status) == 0 && !s.done
	if strings.HasPrefix(arg, "@") {
		return func(j *api.Job) bool { return j.Group == arg[1:] }, open, nil
	}
	first, tasks, isTask, err := taskNumber(list, arg)
	switch {
	case err != nil:
		return nil, false, err
	case isTask:
		wanted, bad := tasksOf(arg, tasks)
		return isOf(first, wanted), open && wanted == nil, bad
	case s.filters():
		return func(j *api.Job) bool {
			return j.Name == arg || strconv.Itoa(j.ID) == arg || arrayName(j) == arg
		}, false, nil
	}
	first, found, err := arrayNamed(list, arg)
	if !found || err != nil {
		return nil, false, err
	}
	return isOf(first, nil), open, nil
}

// isOf is whether a job is one of those tasks of an array; nil = all.
func isOf(first int, wanted map[int32]bool) func(*api.Job) bool {
	return func(j *api.Job) bool {
		return j.Array != nil && j.Array.First == first && (wanted == nil || wanted[int32(j.Array.Index)])
	}
}

// taskNumber returns the first task of the array, and the part behind it, that an argument such as 12_3 names; false =
// it names none of the list.
func taskNumber(list []api.Job, arg string) (first int, tasks string, is bool, err error) {
	of, tasks, is := cutTasks(arg)
	if is && !jobfile.IsNumber(of) && isSeveral(tasks) {
		first, is, err = arrayNamed(list, of)
		return first, tasks, is, err
	}
	first, _ = strconv.Atoi(of)
	return first, tasks, is && jobfile.IsNumber(of) && slices.ContainsFunc(list, func(j api.Job) bool {
		return j.Array != nil && j.Array.First == first
	}), nil
}

// tasksOf reads which tasks of an array are meant; nil = all.
func tasksOf(arg, text string) (map[int32]bool, error) {
	if text == "*" {
		return nil, nil
	}
	inner := text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		inner = text[1 : len(text)-1]
	}
	a, err := jobfile.ParseArray(inner)
	if err != nil || inner == text && (a.AtOnce > 0 || len(a.Indices) > 1) {
		return nil, term.Usagef("%s, want tasks of an array, as in 12_3, 12_[0-9] or 12_*", term.ShellWord(arg))
	}
	wanted := make(map[int32]bool, len(a.Indices))
	for _, index := range a.Indices {
		wanted[index] = true
	}
	return wanted, nil
}

// plainly refuses what no job can be called, and no address can have.
func plainly(cmd *cobra.Command, args ...string) error {
	for _, arg := range args {
		if arg == "" || arg == "." || arg == ".." {
			return term.Usagef("%s: job %q, want its number or name", term.OwnName(cmd), arg)
		}
	}
	return nil
}

// oneJob returns what names the job that a verb about one job is about: a task of an array is found by its number.
// What names an array is an error that says how many jobs it has. Other arguments are left to the server.
func oneJob(cmd *cobra.Command, c *api.Client, arg string) (string, error) {
	if err := plainly(cmd, arg); err != nil {
		return "", err
	}
	if !isPattern(arg) && !isNone(cmd.Context(), c, arg) {
		noteFirst(cmd, c, arg)
		return arg, nil
	}
	list, err := c.Jobs(cmd.Context(), api.Filter{})
	if err != nil {
		return "", err
	}
	return oneOf(list.Jobs, arg)
}

// noteFirst says that a number which names an array means its first task alone here.
func noteFirst(cmd *cobra.Command, c *api.Client, arg string) {
	if !jobfile.IsNumber(arg) {
		return
	}
	j, err := c.Job(cmd.Context(), arg)
	if err == nil && j.Array != nil && j.Array.First == j.ID && j.Array.Size > 1 {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: this is %s alone, the first of the %d tasks of array %d\n",
			jobNumber(&j), j.Array.Size, j.ID)
	}
}

// oneOf returns the one job of a list that an argument stands for.
func oneOf(list []api.Job, arg string) (string, error) {
	found, err := (&selection{done: true}).match(list, arg)
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", term.Usagef("%s means %d jobs, want one, as %s", term.ShellWord(arg), len(found), found[0])
	case len(found) == 0:
		return "", &term.CodedError{Code: term.ExitNotFound, Err: fmt.Errorf("job %q: %w", arg, api.ErrNoJob)}
	}
	return found[0], nil
}

// ask has the user confirm that several jobs are meant, where that is a person who can.
func (s *selection) ask(cmd *cobra.Command, picked []string) error {
	if len(picked) < 2 || s.yes {
		return nil
	}
	const most = 8
	names := strings.Join(picked[:min(len(picked), most)], ", ")
	if len(picked) > most {
		names += ", ..."
	}
	return confirmed(cmd, fmt.Sprintf("%s %d jobs (%s)?", term.OwnName(cmd), len(picked), names),
		term.OwnName(cmd)+": nothing was done")
}

// confirmed has the user say yes to a question, where that is a person who can; left says that he did not.
func confirmed(cmd *cobra.Command, question, left string) error {
	if _, reads := term.Terminal(cmd.ErrOrStderr()); !reads || !term.Reads(cmd.InOrStdin()) {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), question, " [y/N] ")
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return &term.CodedError{Code: term.ExitInterrupted, Err: errors.New(left)}
	}
	return nil
}

// each has something done with each of the jobs that are meant.
func (s *selection) each(cmd *cobra.Command, c *api.Client, args []string, do func(context.Context,
	string) error) error {
	picked, err := s.pick(cmd, c, args)
	if err != nil {
		return client.ApiError(err)
	}
	return each(cmd, picked, func(job string) error { return do(cmd.Context(), job) })
}
