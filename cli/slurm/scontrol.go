package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
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

// controlFlags are the flags of scontrol as given.
type controlFlags struct {
	to      client.Target
	oneLine bool
}

// controlUnused means nothing here.
var controlUnused = unused{"all/a!", "details/d!", "quiet/Q!", "verbose/v!", "hide!", "clusters/M"}

func newScontrol() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "scontrol COMMAND [ARGUMENTS...]",
		Short: "Change and show jobs as Slurm's scontrol does",
		Long: `Does what Slurm's scontrol does about jobs: requeue, hold, release, requeuehold,
update JobId=N KEY=VALUE..., show job [N], show hostnames [LIST], show node,
ping and version. A job may requeue itself while it is asked to end: it waits
for its turn again, whatever its exit code.`,
		Example: `  scontrol requeue $SLURM_JOB_ID
  scontrol update JobId=12 TimeLimit=2:00:00`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return term.Usagef("scontrol: no command, want one of requeue, hold, release, update, show")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			controlUnused.note(cmd)
			if done, err := f.local(cmd, args); done || err != nil {
				return err
			}
			return f.to.Changing(f.control)(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVarP(&f.oneLine, "oneliner", "o", false, "a job on one line")
	controlUnused.define(fs)
	return cmd
}

// local does what needs no manager, and reports whether that was asked for.
func (f *controlFlags) local(cmd *cobra.Command, args []string) (done bool, err error) {
	switch word := strings.ToLower(args[0]); {
	case word == "version":
		return true, term.WriteText(cmd.OutOrStdout(), "trainyard "+term.OwnBuild().Version+"\n")
	case word == "show" && len(args) > 1 && slices.Contains([]string{"host", "hostname", "hostnames"},
		strings.ToLower(args[1])):
		return true, hostNames(cmd, args[2:])
	}
	return false, nil
}

// control does what a manager is asked for.
func (f *controlFlags) control(cmd *cobra.Command, c *api.Client, args []string) error {
	ctx := cmd.Context()
	switch word := strings.ToLower(args[0]); word {
	case "requeue":
		if os.Getenv("TRAINYARD_JOB_ID") != "" { // a job that puts itself back gets signals meanwhile
			var done context.CancelFunc
			ctx, done = context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer done()
		}
		return commandAll(ctx, c, word, "requeue", args[1:], mayRequeue)
	case "requeuehold":
		return commandAll(ctx, c, word, "pause", args[1:], mayHoldAgain)
	case "hold", "uhold":
		return commandAll(ctx, c, word, "pause", args[1:], mayHold)
	case "release":
		return commandAll(ctx, c, word, "resume", args[1:], func(*line) error { return nil })
	case "update":
		return update(ctx, c, args[1:])
	case "show":
		return f.show(cmd, c, args[1:])
	case "ping":
		_, err := c.Info(ctx)
		if err == nil {
			err = term.WriteText(cmd.OutOrStdout(), "Slurmctld(primary) at localhost is UP\n")
		}
		return err
	}
	return term.Refusedf("scontrol: %s is not here; want one of requeue, hold, release, update, show",
		term.ShellWord(args[0]))
}

// named returns the jobs that arguments name.
func named(word string, args []string) (*which, error) {
	if len(args) == 0 {
		return nil, term.Usagef("scontrol %s: no job, want its number", word)
	}
	var jobs []string
	for _, arg := range args { // jobid=12 is a way to name one
		if _, number, named := strings.Cut(arg, "="); named {
			arg = number
		}
		jobs = append(jobs, arg)
	}
	numbers, err := given{"scontrol " + word + ": job", jobs}.list()
	if err == nil {
		err = noSteps("scontrol "+word, numbers)
	}
	return &which{jobs: numbers, wide: true}, err
}

// commandAll has the same done with all jobs that are named and may have it done, in one request.
func commandAll(ctx context.Context, c *api.Client, word, command string, args []string, may func(*line) error) error {
	w, err := named(word, args)
	if err != nil {
		return err
	}
	return w.command(ctx, c, command, may)
}

// mayRequeue refuses a job that cannot be put back, or of which its user said that it is not.
func mayRequeue(l *line) error {
	switch {
	case l.state() == pending:
		return conflict("Job is pending execution for job " + l.id())
	case l.State == "done":
		return conflict("job " + l.id() + " is done and is not started again here; submit it again")
	case l.stays():
		return conflict("Requested operation is presently disabled for job " + l.id() + ", submitted with " +
			"--no-requeue; `trainyard requeue " + strconv.Itoa(l.ID) + "` puts it back all the same")
	}
	return nil
}

// mayHoldAgain is mayRequeue for a job that waits until it is released then: one that waits may be held too.
func mayHoldAgain(l *line) error {
	if l.state() == pending && !l.stays() {
		return nil
	}
	return mayRequeue(l)
}

// mayHold refuses a job that waits for nothing.
func mayHold(l *line) error {
	if l.state() != pending {
		return conflict("Job is no longer pending execution for job " + l.id())
	}
	return nil
}

func conflict(text string) error {
	return &term.CodedError{Code: term.ExitConflict, Err: fmt.Errorf("scontrol: %s", text)}
}

// keysOf are keys of jobs by the names that scontrol update has for them, in small letters.
var keysOf = map[string]string{"timelimit": "time_limit", "priority": "priority", "dependency": "after",
	"gres": "gpus", "numgpus": "gpus", "trespernode": "gpus"}

// update changes keys of a job.
func update(ctx context.Context, c *api.Client, args []string) error {
	var jobs []string
	change := make(map[string]any)
	for _, arg := range args {
		name, value, valued := strings.Cut(arg, "=")
		if !valued {
			return term.Usagef("scontrol update: %s, want KEY=VALUE", term.ShellWord(arg))
		}
		if name = strings.ToLower(name); name == "jobid" || name == "job" {
			jobs = append(jobs, value)
			continue
		}
		sign := strings.TrimPrefix(name, strings.TrimRight(name, "+-"))
		made, err := valueOf(strings.TrimSuffix(name, sign), value)
		if sign != "" {
			made, err = differenceOf(name, sign, value)
			name = strings.TrimSuffix(name, sign)
		}
		if err != nil {
			return err
		}
		change[keysOf[name]] = made
	}
	if len(jobs) == 0 || len(change) == 0 {
		return term.Usagef("scontrol update: want JobId=NUMBER and KEY=VALUE, as TimeLimit=2:00:00")
	}
	w, err := named("update", jobs)
	if err != nil {
		return err
	}
	return w.each(ctx, c, func(ctx context.Context, c *api.Client, l *line) error { return l.update(ctx, c, change) })
}

// update changes keys of the job. As in Slurm the priority 0 holds it; the one that is shown of it changes nothing.
func (l *line) update(ctx context.Context, c *api.Client, change map[string]any) error {
	change = maps.Clone(change)
	if err := l.limitTime(ctx, c, change); err != nil {
		return err
	}
	hold := false
	switch n, ranked := change["priority"].(int); {
	case !ranked:
	case n == l.priority():
		delete(change, "priority")
	case n == 0:
		if err := mayHold(l); err != nil {
			return err
		}
		hold = true
		delete(change, "priority")
	case n > usualPriority+math.MinInt32: // as it is shown
		change["priority"] = n - usualPriority
	}
	job := strconv.Itoa(l.ID)
	if len(change) > 0 {
		keys, err := json.Marshal(change) // JSON is YAML
		if err != nil {
			return err
		}
		if _, err = api.EditsOf(c).Edit(ctx, job, api.SeenJob{}, api.Edit{Keys: string(keys)}); err != nil {
			return err
		}
	}
	if !hold {
		return nil
	}
	_, err := c.Pause(ctx, job)
	return err
}

// difference is how much longer a time limit is to be.
type difference time.Duration

// differenceOf makes one of TimeLimit+=30.
func differenceOf(name, sign, value string) (any, error) {
	by, err := task.ParseSlurmTime(value)
	if name != "timelimit"+sign || len(sign) > 1 || err != nil {
		return nil, term.Usagef("scontrol update: %s=%s, want TimeLimit+= or TimeLimit-= and minutes, HH:MM:SS or "+
			"D-HH:MM:SS", term.ShellWord(name), term.ShellWord(value))
	}
	if sign == "-" {
		by = -by
	}
	return difference(by), nil
}

// limitTime puts the time limit that a change is to make in the form of a job file, with what stays of that of the job:
// when it is warned, and whether the limit is of each attempt. As in Slurm, a first limit is of each.
func (l *line) limitTime(ctx context.Context, c *api.Client, change map[string]any) error {
	most, limits := change["time_limit"].(time.Duration)
	by, changes := change["time_limit"].(difference)
	if !limits && !changes {
		return nil
	}
	doc, err := c.Job(ctx, strconv.Itoa(l.ID))
	if err != nil {
		return err
	}
	limit := api.TimeLimit{Max: doc.TimeLimit, Each: true}
	if doc.Keys != nil && doc.Keys.TimeLimit != nil {
		limit = *doc.Keys.TimeLimit
	}
	if changes && limit.Max == "" {
		return term.Refusedf("scontrol update: job %d has no time limit to change, want TimeLimit=", l.ID)
	}
	if changes {
		now, _ := time.ParseDuration(limit.Max) // it is a time
		if most = now + time.Duration(by); most <= 0 {
			return term.Refusedf("scontrol update: job %d has a time limit of %v, want less taken off it", l.ID, now)
		}
	}
	if warn, _ := time.ParseDuration(limit.Warn); warn > most {
		limit.Warn = most.String()
	}
	limit.Max = most.String()
	change["time_limit"] = limit
	return nil
}

// valueOf makes the value of a key of jobs from that of scontrol.
func valueOf(name, value string) (any, error) {
	switch keysOf[name] {
	case "time_limit":
		if slices.Contains([]string{"unlimited", "infinite", "-1"}, strings.ToLower(value)) {
			return "none", nil
		}
		most, err := task.ParseSlurmTime(value)
		if err != nil {
			return nil, term.Usagef("scontrol update: TimeLimit=%s, want minutes, HH:MM:SS, D-HH:MM:SS or "+
				"UNLIMITED",
				term.ShellWord(value))
		}
		return most, nil
	case "priority", "gpus":
		number := value[strings.LastIndexByte(value, ':')+1:]
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, term.Usagef("scontrol update: %s=%s, want a number", name, term.ShellWord(value))
		}
		if keysOf[name] == "priority" && n > math.MaxUint32 {
			return nil, term.Usagef("scontrol update: Priority=%d, want at most %d, or 0 to hold the job", n,
				math.MaxUint32)
		}
		return n, nil
	case "after":
		return nil, term.Refusedf("scontrol update: Dependency is not changed here; cancel the job and submit it again")
	}
	return nil, term.Refusedf("scontrol update: %s is not changed here; want some of TimeLimit, Priority, "+
		"Gres", term.ShellWord(name))
}
