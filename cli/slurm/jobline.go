package slurm

import (
	"fmt"
	"math"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/sched"
)

// line is a job, or tasks of an array that wait together, as one line of a list.
type line struct {
	api.Job
	node  string // the machine
	tasks string // of several: [0-3%2]; "" = one job
}

// state is a word of Slurm with its short form.
type state struct{ word, short string }

// States of jobs.
var (
	pending    = state{"PENDING", "PD"}
	running    = state{"RUNNING", "R"}
	completing = state{"COMPLETING", "CG"}
	completed  = state{"COMPLETED", "CD"}
	failed     = state{"FAILED", "F"}
	timeout    = state{"TIMEOUT", "TO"}
	noMemory   = state{"OUT_OF_MEMORY", "OOM"}
	cancelled  = state{"CANCELLED", "CA"}
)

// others are states that no job has here, and may be asked for.
var others = []state{{"SUSPENDED", "S"}, {"CONFIGURING", "CF"}, {"NODE_FAIL", "NF"}, {"PREEMPTED", "PR"},
	{"BOOT_FAIL", "BF"}, {"DEADLINE", "DL"}, {"REQUEUED", "RQ"}, {"RESIZING", "RS"}, {"REVOKED", "RV"},
	{"REQUEUE_HOLD", "RH"}, {"SPECIAL_EXIT", "SE"}, {"STOPPED", "ST"}, {"STAGE_OUT", "SO"}, {"SIGNALING", "SI"},
	{"RESV_DEL_HOLD", "RD"}, {"REQUEUE_FED", "RF"}}

// parseStates reads words of states, long or short; nil = all.
func parseStates(flag string, given []string) (map[state]bool, error) {
	all := append([]state{pending, running, completing, completed, failed, timeout, noMemory, cancelled}, others...)
	wanted := make(map[state]bool)
	for _, word := range given {
		if strings.EqualFold(word, "all") {
			return nil, nil
		}
		i := slices.IndexFunc(all, func(s state) bool {
			return strings.EqualFold(s.word, word) || strings.EqualFold(s.short, word)
		})
		if i < 0 {
			return nil, term.Usagef("%s %s, want states such as PENDING, RUNNING or PD,R, or all", flag,
				term.ShellWord(word))
		}
		wanted[all[i]] = true
	}
	return wanted, nil
}

// state returns how the job stands.
func (l *line) state() state {
	switch l.State {
	case "held", "waiting":
		return pending
	case "starting", "running":
		return running
	case "stopping":
		return completing
	}
	switch {
	case l.Outcome == "finished":
		return completed
	case l.Outcome != "failed":
		return cancelled
	case strings.HasPrefix(l.Text, task.Timeout):
		return timeout
	case strings.Contains(l.Text, "of memory"):
		return noMemory
	}
	return failed
}

// id names the job as users do: 12, 12_3 or 12_[0-3%2].
func (l *line) id() string {
	switch {
	case l.Array == nil:
		return strconv.Itoa(l.ID)
	case l.tasks != "":
		return fmt.Sprintf("%d_%s", l.Array.First, l.tasks)
	}
	return fmt.Sprintf("%d_%d", l.Array.First, l.Array.Index)
}

// name is that of the job, or of the array that it is a task of.
func (l *line) name() string {
	if l.Array == nil {
		return l.Name
	}
	return strings.TrimSuffix(l.Name, "_"+strconv.Itoa(l.Array.Index))
}

// reason says in a word of Slurm why a job waits.
func (l *line) reason() string {
	switch {
	case l.state() == failed:
		return "NonZeroExitCode"
	case l.state() == timeout:
		return "TimeLimit"
	case l.Outcome == "rejected" && strings.Contains(l.Why, "to start after"):
		return "DependencyNeverSatisfied"
	case l.state() != pending:
		return "None"
	case strings.Contains(l.Why, "paused by its user"), strings.HasPrefix(l.Why, text.Suspended):
		return "JobHeldUser"
	case strings.HasPrefix(l.Why, "held: "): // by the controller of a cluster
		return "JobHeldAdmin"
	case strings.Contains(l.Why, "depends on"):
		return "Dependency"
	case strings.Contains(l.Why, "of its array"):
		return "JobArrayTaskLimit"
	case strings.Contains(l.Why, "not to start before"):
		return "BeginTime"
	case l.State == "held":
		return "None"
	}
	return "Resources"
}

// nodes is where the job runs or ran.
func (l *line) nodes() string {
	if l.state() == pending || l.Attempt == 0 {
		return ""
	}
	return l.node
}

// where is nodes, or in brackets the reason for which there is none.
func (l *line) where() string {
	if l.state() == pending {
		return "(" + l.reason() + ")"
	}
	return l.nodes()
}

// used is how long it has run.
func (l *line) used() string { return clock(time.Duration(l.RunSec*float64(time.Second)), false) }

// clock writes a duration as Slurm does: [D-]H:MM:SS, or M:SS where it is shorter, unless it is to be whole.
func clock(d time.Duration, whole bool) string {
	s := int64(d / time.Second)
	days, hours, minutes, seconds := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, seconds)
	case whole:
		return fmt.Sprintf("%02d:%02d:%02d", hours, minutes, seconds)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, seconds)
	}
	return fmt.Sprintf("%d:%02d", minutes, seconds)
}

// at writes a time of the API as Slurm does, or what stands for none.
func at(text, none string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return none
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

// unlimited is the word for no time limit.
const unlimited = "UNLIMITED"

// limit is how long it may run.
func (l *line) limit(whole bool) string {
	most, err := time.ParseDuration(l.TimeLimit)
	if err != nil {
		return unlimited
	}
	return clock(most, whole)
}

// left is how long it may run still. Of a later attempt it is not known: the limit may be of each.
func (l *line) left() string {
	most, err := time.ParseDuration(l.TimeLimit)
	switch {
	case err != nil:
		return unlimited
	case l.Attempt > 1:
		return unknown
	}
	return clock(max(most-time.Duration(l.RunSec*float64(time.Second)), 0), false)
}

// cpus is how many CPUs it asks for.
func (l *line) cpus() string {
	if l.CPUs == 0 {
		return unknown
	}
	return strconv.FormatFloat(math.Ceil(l.CPUs*float64(l.width())), 'f', 0, 64)
}

// memory is how much memory it asks for.
func (l *line) memory() string {
	if l.MemoryGB == 0 {
		return unknown
	}
	const perGB = 1 << 10
	mb := math.Round(l.MemoryGB * float64(l.width()) * perGB)
	if gb := mb / perGB; gb == math.Trunc(gb) {
		return strconv.FormatFloat(gb, 'f', 0, 64) + "G"
	}
	return strconv.FormatFloat(mb, 'f', 0, 64) + "M"
}

// stays reports whether it is never put back, as --no-requeue asks for.
func (l *line) stays() bool { return l.Preemptible == sched.NeverPreempt.String() }

// start is when it started or, as far as is known, will.
func (l *line) start(none string) string {
	if l.Started == "" && l.Start != nil {
		return at(l.Start.Median, none)
	}
	return at(l.Started, none)
}

// usualPriority is that of a job which asks for nothing, as Slurm has it; 0 is that of one that is held.
const usualPriority = 1<<32 - 65537

// priority is a number as Slurm writes it: more than 0, unless the job is held.
func (l *line) priority() int {
	if strings.HasPrefix(l.reason(), "JobHeld") {
		return 0
	}
	return min(max(usualPriority+l.Priority, 1), math.MaxUint32)
}

// share is the priority as a part of the greatest.
func (l *line) share() string { return fmt.Sprintf("%.14f", float64(l.priority())/math.MaxUint32) }

// exit is the exit code and the signal that ended it.
func (l *line) exit() string {
	const signalled = 128
	if l.State == "done" && l.ExitCode > signalled {
		return fmt.Sprintf("0:%d", l.ExitCode-signalled)
	}
	if l.State != "done" {
		return "0:0"
	}
	return fmt.Sprintf("%d:0", l.ExitCode)
}

// gres is what it holds or wants of GPUs.
func (l *line) gres() string { return "gres:gpu:" + strconv.Itoa(l.width()) }

// width is the number of GPUs that it holds or wants.
func (l *line) width() int {
	if len(l.GPUs) > 0 {
		return len(l.GPUs)
	}
	return l.Want
}

// userID is the number of its user, -1 if he is none of this machine.
func (l *line) userID() string {
	u, err := user.Lookup(l.User)
	if err != nil {
		return "-1"
	}
	return u.Uid
}
