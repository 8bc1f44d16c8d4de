package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// which says which jobs are meant. What is empty narrows nothing, and where all of it is empty no job is meant, unless
// all says otherwise.
type which struct {
	all bool // where nothing else is given

	jobs   []string // numbers: 12 is a job, or all of an array; 12_3, 12_[0-3]
	users  []string
	names  []string
	me     bool
	states map[state]bool // nil = all
	wide   bool           // a line for each task
	start  bool           // with when those that wait are expected to start
}

// given is a selector as given: its flag, for errors, and its values.
type given struct {
	flag   string
	values []string
}

// list splits the values, by commas and spaces. A selector with nothing in it is an error: it often comes from a
// variable that is not set, and none given means all.
func (g given) list() (all []string, err error) {
	if all = list(g.values); len(g.values) > 0 && len(all) == 0 {
		return nil, term.Usagef("%s %s is empty, want one or more", g.flag, term.ShellWord(g.values[0]))
	}
	return all, nil
}

// newWhich reads selectors.
func newWhich(jobs, users, names, states given) (w which, err error) {
	for _, one := range []struct {
		given
		into *[]string
	}{{jobs, &w.jobs}, {users, &w.users}, {names, &w.names}} {
		if *one.into, err = one.list(); err != nil {
			return which{}, err
		}
	}
	words, err := states.list()
	if err == nil && len(words) > 0 {
		w.states, err = parseStates(states.flag, words)
	}
	return w, err
}

// nothing reports whether no job is meant.
func (w *which) nothing() bool {
	return !w.all && !w.me && w.states == nil && len(w.jobs)+len(w.users)+len(w.names) == 0
}

// noSteps refuses steps of jobs for a command that acts on whole jobs.
func noSteps(word string, args []string) error {
	for _, arg := range args {
		if job, _, step := strings.Cut(arg, "."); step {
			return term.Usagef("%s: %s is a step, of which none ends or changes alone here, want its job: %s", word,
				term.ShellWord(arg), term.ShellWord(job))
		}
	}
	return nil
}

// fits returns which jobs an argument stands for.
func fits(arg string) (func(*api.Job) bool, error) {
	arg, _, _ = strings.Cut(arg, ".") // a step stands for its job
	number, tasks, array := strings.Cut(arg, "_")
	first, err := strconv.Atoi(number)
	wrong := term.Usagef("job %s: Invalid job id specified, want a number, as 12, 12_3 or 12_[0-3]",
		term.ShellWord(arg))
	if err != nil || first < 0 {
		return nil, wrong
	}
	if !array || tasks == "*" {
		return func(j *api.Job) bool {
			return j.ID == first || j.Array != nil && j.Array.First == first
		}, nil
	}
	a, err := jobfile.ParseArray(strings.TrimSuffix(strings.TrimPrefix(tasks, "["), "]"))
	if err != nil {
		return nil, wrong
	}
	return func(j *api.Job) bool {
		return j.Array != nil && j.Array.First == first && slices.Contains(a.Indices, int32(j.Array.Index))
	}, nil
}

// passes reports whether the job is one of the users, names and states that are wanted.
func (w *which) passes(l *line) bool {
	return (len(w.users) == 0 || slices.Contains(w.users, l.User)) &&
		(len(w.names) == 0 || slices.Contains(w.names, l.name())) && (w.states == nil || w.states[l.state()])
}

// find returns the jobs that are meant, by number. Numbers that no job has are an error, with which the jobs of the
// others are returned.
func (w *which) find(ctx context.Context, c *api.Client) (found []line, err error) {
	if w.nothing() {
		return nil, nil
	}
	if failed := w.mine(ctx, c); failed != nil {
		return nil, failed
	}
	filter := api.Filter{}
	if w.start {
		filter.Ahead = api.AsSuits
	}
	all, err := c.Jobs(ctx, filter)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	meant, missing := w.meant(all.Jobs)
	if meant == nil {
		return nil, missing
	}
	for i := range all.Jobs {
		if l := (line{Job: all.Jobs[i], node: nodes.Node}); (len(w.jobs) == 0 || meant[i]) && w.passes(&l) {
			found = append(found, l)
		}
	}
	if !w.wide {
		found = folded(found)
	}
	return found, missing
}

// each does something about each job that is meant, the others too where it fails for one, and returns all that went
// wrong, the first of it with its exit code. Several are asked about at a time: what comes together the manager makes
// durable at once.
func (w *which) each(ctx context.Context, c *api.Client, do func(context.Context, *api.Client, *line) error) error {
	lines, err := w.find(ctx, c)
	wrong := make([]error, len(lines))
	sideBySide(len(lines), func(i int) {
		if ctx.Err() == nil {
			wrong[i] = do(ctx, c, &lines[i])
		}
	})
	w.settle(lines, wrong)
	return errors.Join(append([]error{err, ctx.Err()}, wrong...)...)
}

// sideBySide does something for each of n, several at a time.
func sideBySide(n int, do func(i int)) {
	const atOnce = 16
	var all sync.WaitGroup
	for k := range min(atOnce, n) {
		all.Go(func() {
			for i := k; i < n; i += atOnce {
				do(i)
			}
		})
	}
	all.Wait()
}

// command has the same done with each job that is meant and may have it done, in one request, and returns all that went
// wrong, the first of it with its exit code.
func (w *which) command(ctx context.Context, c *api.Client, command string, may func(*line) error) error {
	lines, err := w.find(ctx, c)
	wrong := make([]error, len(lines))
	var jobs []string
	var asked []int // the line of each
	for i := range lines {
		if wrong[i] = may(&lines[i]); wrong[i] == nil {
			jobs, asked = append(jobs, strconv.Itoa(lines[i].ID)), append(asked, i)
		}
	}
	_, refused, failed := api.CommandAll(ctx, c, command, jobs)
	for k := range refused {
		if command != "cancel" || !errors.Is(refused[k], api.ErrDone) { // as in Slurm, no error
			wrong[asked[k]] = refused[k]
		}
	}
	w.settle(lines, wrong)
	return errors.Join(append([]error{err, failed}, wrong...)...)
}

// errOver says that nothing was done with a job that is over, which is no error.
var errOver = errors.New("over")

// settle leaves of what went wrong what is an error. Tasks that something does not apply to are passed over, as in
// Slurm, where an argument means others with which it was done; where it means none, one of them is its error.
func (w *which) settle(lines []line, wrong []error) {
	kept := make([]bool, len(lines))
	for _, arg := range w.jobs {
		one, err := fits(arg)
		first := -1
		for i := 0; err == nil && i < len(lines); i++ {
			if !one(&lines[i].Job) {
				continue
			}
			if wrong[i] == nil {
				first = -1
				break
			}
			if first < 0 && inapt(wrong[i]) {
				first = i
			}
		}
		if first >= 0 {
			kept[first] = true
		}
	}
	for i := range lines {
		if errors.Is(wrong[i], errOver) || len(w.jobs) > 0 && inapt(wrong[i]) && !kept[i] {
			wrong[i] = nil
		}
		wrong[i] = lines[i].about(wrong[i])
	}
}

// inapt reports whether an error says that something does not apply to a job as it stands.
func inapt(err error) bool {
	coded := (*term.CodedError)(nil)
	return errors.As(err, &coded) && coded.Code == term.ExitConflict || errors.Is(err, api.ErrDone) ||
		errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrFixed)
}

// about has a manager's error name a task as users do: 12_3.
func (l *line) about(err error) error {
	p := (*api.Problem)(nil)
	if l.Array == nil || !inapt(err) || !errors.As(err, &p) {
		return err
	}
	number := strconv.Itoa(l.ID)
	for _, name := range []string{"job " + number, "job " + strconv.Quote(number)} {
		if rest, found := strings.CutPrefix(p.Detail, name); found {
			return &term.CodedError{Code: term.ExitCode(client.ApiError(err)), Err: errors.New("job " + l.id() + rest)}
		}
	}
	return err
}

// mine adds the user who asks, where his jobs are meant.
func (w *which) mine(ctx context.Context, c *api.Client) error {
	if !w.me {
		return nil
	}
	info, err := c.Info(ctx)
	if w.users = append(w.users, info.You); err != nil || info.You != "" {
		return err
	}
	u, err := user.Current()
	if err == nil {
		w.users = append(w.users, u.Username)
	}
	return err
}

// meant reports which of the jobs numbers stand for, nil if one is no number. Numbers that no job has are an error.
func (w *which) meant(jobs []api.Job) (meant []bool, missing error) {
	meant = make([]bool, len(jobs))
	for _, arg := range w.jobs {
		one, err := fits(arg)
		if err != nil {
			return nil, err
		}
		found := false
		for i := range jobs {
			if one(&jobs[i]) {
				meant[i], found = true, true
			}
		}
		if !found {
			missing = errors.Join(missing, &term.CodedError{Code: term.ExitNotFound,
				Err: fmt.Errorf("job %s: Invalid job id specified", term.ShellWord(arg))})
		}
	}
	return meant, missing
}

// folded makes one line of the tasks of an array that wait for the same.
func folded(lines []line) (short []line) {
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && together(&lines[i], &lines[end]) {
			end++
		}
		l := lines[i]
		if l.Array != nil && l.state() == pending {
			l.tasks = tasks(lines[i:end])
		}
		short, i = append(short, l), end
	}
	return short
}

// together reports whether two jobs that follow each other are one line.
func together(a, b *line) bool {
	return a.Array != nil && b.Array != nil && a.Array.First == b.Array.First && a.state() == pending &&
		b.state() == pending && a.reason() == b.reason()
}

// tasks names tasks of an array, as [0-3,7%2].
func tasks(lines []line) string {
	numbers := make([]int, len(lines))
	for i := range lines {
		numbers[i] = lines[i].Array.Index
	}
	limit := ""
	if n := lines[0].Array.AtOnce; n > 0 {
		limit = "%" + strconv.Itoa(n)
	}
	return "[" + strings.Join(client.Spans(numbers), ",") + limit + "]"
}
