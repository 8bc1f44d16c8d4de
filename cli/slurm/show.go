package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
)

// show writes jobs or nodes.
func (f *controlFlags) show(cmd *cobra.Command, c *api.Client, args []string) error {
	if len(args) == 0 {
		return term.Usagef("scontrol show: want job, hostnames or node")
	}
	what, number, _ := strings.Cut(strings.ToLower(args[0]), "=")
	switch {
	case what == "job" || what == "jobs" || what == "jobid":
		var numbers []string
		for _, arg := range append([]string{number}, args[1:]...) {
			if arg != "" {
				numbers = append(numbers, arg)
			}
		}
		return f.showJobs(cmd, c, numbers)
	case what == "node" || what == "nodes":
		doc, err := c.Nodes(cmd.Context())
		if err != nil {
			return err
		}
		return term.WriteText(cmd.OutOrStdout(), nodeText(&doc))
	}
	return term.Refusedf("scontrol show: %s is not here, want job, hostnames or node", term.ShellWord(args[0]))
}

func (f *controlFlags) showJobs(cmd *cobra.Command, c *api.Client, numbers []string) error {
	jobs, err := given{"scontrol show: job", numbers}.list()
	if err != nil {
		return err
	}
	lines, missing := (&which{jobs: jobs, wide: true, all: true}).find(cmd.Context(), c)
	if missing != nil && len(lines) == 0 {
		return missing
	}
	wrong := withPaths(cmd.Context(), c, lines, len(jobs) > 0)
	if len(lines) == 0 {
		return term.WriteText(cmd.OutOrStdout(), "No jobs in the system\n")
	}
	var b strings.Builder
	for i := range lines {
		text := jobText(&lines[i])
		if f.oneLine {
			text = strings.ReplaceAll(text, "\n   ", " ")
		}
		b.WriteString(text + "\n")
		if !f.oneLine {
			b.WriteByte('\n')
		}
	}
	return errors.Join(term.WriteText(cmd.OutOrStdout(), b.String()), missing, wrong)
}

// mostAsked is about how many jobs that no one named it is asked one by one.
const mostAsked = 100

// withPaths adds to jobs what lists do not have of them: of all if they are named, else of the last that are not done.
// Jobs that are gone meanwhile stay without, and those of which it cannot be had, which is an error.
func withPaths(ctx context.Context, c *api.Client, lines []line, named bool) error {
	var asked []*line
	for i := len(lines) - 1; i >= 0; i-- {
		if named || lines[i].State != "done" && len(asked) < mostAsked {
			asked = append(asked, &lines[i])
		}
	}
	wrong := make([]error, len(asked))
	sideBySide(len(asked), func(i int) {
		if ctx.Err() != nil {
			return
		}
		doc, err := c.Job(ctx, strconv.Itoa(asked[i].ID))
		if asked[i].Paths = doc.Paths; !errors.Is(err, api.ErrNoJob) {
			wrong[i] = err
		}
	})
	return errors.Join(append(wrong, ctx.Err())...)
}

// places are the lines about where a job runs and what it writes to. As in Slurm, only a batch script has files.
func places(p *api.Paths) (text []string) {
	if p == nil {
		return nil
	}
	text = []string{"Command=" + api.Printable(cmp.Or(p.Program, "(null)")), "WorkDir=" + api.Printable(p.Dir)}
	if p.Output != "" {
		text = append(text, "StdErr="+api.Printable(p.Error), "StdIn=/dev/null", "StdOut="+api.Printable(p.Output))
	}
	return text
}

// jobText is what scontrol show job says of a job, as far as it is known.
func jobText(l *line) string {
	array := ""
	if l.Array != nil {
		array = fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%d", l.Array.First, l.Array.Index)
	}
	nodes := l.nodes()
	if nodes == "" {
		nodes = "(null)"
	}
	again := 1
	if l.stays() {
		again = 0
	}
	return strings.Join(append([]string{
		fmt.Sprintf("JobId=%d%s JobName=%s", l.ID, array, api.Printable(l.name())),
		fmt.Sprintf("UserId=%s(%s) Account=%s QOS=normal Priority=%d", l.User, l.userID(), l.Group, l.priority()),
		fmt.Sprintf("JobState=%s Reason=%s", l.state().word, l.reason()),
		fmt.Sprintf("Requeue=%d Restarts=%d BatchFlag=1 ExitCode=%s", again, max(l.Attempt-1, 0), l.exit()),
		fmt.Sprintf("RunTime=%s TimeLimit=%s", clock(time.Duration(l.RunSec*float64(time.Second)), true),
			l.limit(true)),
		fmt.Sprintf("SubmitTime=%s StartTime=%s EndTime=%s", at(l.Submitted, "Unknown"), l.start("Unknown"),
			at(l.Ended, "Unknown")),
		fmt.Sprintf("Partition=%s NodeList=%s", partition, nodes),
		fmt.Sprintf("NumNodes=1 NumCPUs=%s NumTasks=%d TRES=node=1,gres/gpu=%d", l.cpus(), l.tasksAsked(), l.width()),
	}, places(l.Paths)...), "\n   ")
}

// tasksAsked is how many tasks of srun were asked for, as far as that is known.
func (l *line) tasksAsked() int {
	if l.Paths == nil {
		return 1
	}
	return max(l.Paths.Tasks, 1)
}

// hostNames writes the machines of a list one a line: that of the job where none is given.
func hostNames(cmd *cobra.Command, args []string) error {
	text := os.Getenv("SLURM_JOB_NODELIST")
	if len(args) > 0 {
		text = args[0]
	}
	if text == "" {
		return term.Usagef("scontrol show hostnames: no list and no $SLURM_JOB_NODELIST, want a list, as a[1-3]")
	}
	names, err := expand(text)
	if err != nil {
		return err
	}
	return term.WriteText(cmd.OutOrStdout(), strings.Join(names, "\n")+"\n")
}

// expand returns the names of a list such as a,b[1-3,07].
func expand(text string) (names []string, err error) {
	for text != "" {
		end := strings.IndexAny(text, ",[")
		if end < 0 || text[end] == ',' {
			name, rest, _ := strings.Cut(text, ",")
			names, text = append(names, name), rest
			continue
		}
		numbers, rest, closed := strings.Cut(text[end+1:], "]")
		if !closed {
			return nil, term.Usagef("hostnames %s, want ] behind [", term.ShellWord(text))
		}
		for _, span := range strings.Split(numbers, ",") {
			low, high, wide := strings.Cut(span, "-")
			if !wide {
				high = low
			}
			from, bad := strconv.Atoi(low)
			to, wrong := strconv.Atoi(high)
			const most = 1 << 16
			if bad != nil || wrong != nil || to-from >= most {
				return nil, term.Usagef("hostnames [%s], want numbers, as [1-3,7]", numbers)
			}
			for n := from; n <= to; n++ {
				names = append(names, fmt.Sprintf("%s%0*d", text[:end], len(low), n))
			}
		}
		text = strings.TrimPrefix(rest, ",")
	}
	return names, nil
}
