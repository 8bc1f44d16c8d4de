package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/manager/kept"
	"github.com/trainyard/trainyard/sched"
)

// mailLines are the last lines of what a job wrote that a mail has.
const mailLines = 10

// details is the rest of a mail: whose job it is, how it ran, what to do next, and what it wrote last.
func (n *Notifier) details(l *letter) string {
	a := &l.About
	var b strings.Builder
	b.WriteByte('\n')
	line := func(head, text string) { fmt.Fprintf(&b, "%-7s %s\n", head, oneLine(text)) }
	line("Job", fmt.Sprintf("%d", a.Job))
	line("Name", a.Name)
	if a.User != "" {
		line("User", a.User)
	}
	line("State", stateWords[a.Outcome])
	if l.Attempt > 0 {
		line("Ran", ranText(l))
	}
	if why := reason(a); why != "" {
		line("Why", why)
	}
	if next := nextSteps[a.Outcome]; next != "" {
		line("Next", strings.ReplaceAll(next, "JOB", fmt.Sprintf("%d", a.Job)))
	}
	if n.o.Dir == "" || l.Attempt == 0 {
		return b.String()
	}
	if tail := kept.Outputs(n.o.Dir).Tail(sched.JobID(a.Job), l.Attempt, mailLines); len(tail) > 0 {
		b.WriteString("\nThe last lines that it wrote:\n\n")
		for _, text := range tail {
			b.WriteString("  " + oneLine(text) + "\n")
		}
	}
	return b.String()
}

// ranText says for how long a job ran, and how often.
func ranText(l *letter) string {
	exact := time.Second
	if l.Ran < time.Minute {
		exact = time.Millisecond
	}
	if l.Attempt == 1 {
		return l.Ran.Round(exact).String()
	}
	return fmt.Sprintf("%v, in %d attempts", l.Ran.Round(exact), l.Attempt)
}

// reason says why it ended.
func reason(a *Notice) string {
	switch {
	case a.Text != "":
		return a.Text
	case a.Outcome == task.OnFailed && a.ExitCode > 0:
		return fmt.Sprintf("exit code %d", a.ExitCode)
	}
	return ""
}

// stateWords are the states of jobs by what is heard of them.
var stateWords = map[string]string{task.OnFailed: "failed", task.OnFinished: "finished", task.OnPreempted: "waiting",
	task.OnTimeout: "failed (timeout)", task.OnIdle: "running"}

// nextSteps say what its user may do.
var nextSteps = map[string]string{
	task.OnFailed:    "`trainyard logs JOB` has what it wrote, `trainyard why JOB` how it ended",
	task.OnFinished:  "`trainyard logs JOB` has what it wrote",
	task.OnPreempted: "nothing: it goes on from its last checkpoint; `trainyard why JOB` says when",
	task.OnTimeout:   "submit it again with a longer --time; it can go on from its last checkpoint",
	task.OnIdle:      "`trainyard logs JOB` shows whether it hangs, `trainyard cancel JOB` ends it",
}
