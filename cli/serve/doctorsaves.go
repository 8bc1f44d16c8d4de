package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/explain/text"
	"github.com/trainyard/trainyard/host"
	"github.com/trainyard/trainyard/sched"
)

const (
	// longUnsaved is as much work in no checkpoint as is worth a note.
	longUnsaved = 30 * time.Minute
	// mostSaves is how many jobs are named.
	mostSaves = 20
)

// saves reports jobs that lose work when they are stopped, or when the machine goes down.
func (p *patient) saves() []finding {
	const name = "saves"
	if p.jobs == nil {
		return []finding{{name, fine, "not looked at: only a manager knows", ""}}
	}
	var all []finding
	more := 0
	for i := range p.jobs.Jobs {
		j := &p.jobs.Jobs[i]
		found, do := p.saving(j)
		switch {
		case found == "" || j.State == "done":
		case len(all) >= mostSaves:
			more++
		default:
			all = append(all, finding{name, note, client.JobTitle(j) + " " + found, do})
		}
	}
	if more > 0 {
		all = append(all, finding{name, note, fmt.Sprintf("%s more like these", term.Counted(more, "job")),
			"`trainyard ps` marks the jobs that are not stopped for others"})
	}
	if len(all) == 0 {
		all = append(all, finding{name, fine, "no job is known to lose much", ""})
	}
	return all
}

// saving says of a job in which way it does not keep its work, and what to do; "" if it is not known to.
func (p *patient) saving(j *api.Job) (found, do string) {
	switch j.Saves {
	case sched.SavesNot.String():
		return p.refusal(j)
	case sched.ResumesNot.String():
		return "saves, but did not resume: it started from zero after it had saved",
			"have it load the newest file in $TRAINYARD_CHECKPOINT_DIR when it starts; `preemptible: true` in its " +
				"job file lets it be stopped all the same"
	}
	lost := time.Duration(j.UnsavedSec * float64(time.Second))
	if lost < longUnsaved {
		return "", ""
	}
	return fmt.Sprintf("has %s of work in no checkpoint", text.Work(lost)),
		"have it save to $TRAINYARD_CHECKPOINT_DIR more often, or print `TRAINYARD saved` where it saves elsewhere"
}

// attemptsLooked is how many attempts of a job are looked at for the last that was asked to end.
const attemptsLooked = 32

// refusal says why a job saved nothing when it was asked to, by the record of the attempt that was asked last.
func (p *patient) refusal(j *api.Job) (found, do string) {
	found = "was asked to save and saved nothing"
	do = fmt.Sprintf("`trainyard logs %d` may say why; once it is seen to save, it counts as a job that saves", j.ID)
	for n := j.Attempt; n > 0 && n > j.Attempt-attemptsLooked; n-- {
		run := shim.State(p.dir).RunDir(int32(j.ID), int32(n))
		over, err := run.Over()
		if err != nil || !over.Stopped || over.StopAsked.IsZero() {
			continue
		}
		signal := "TERM"
		if o, bad := run.Order(); bad == nil && o.Save.Signal != "" {
			signal = api.Printable(o.Save.Signal)
		}
		cause, remedy := refusalOf(over, "SIG"+signal)
		return fmt.Sprintf("%s (attempt %d): %s", found, n, cause),
			strings.ReplaceAll(remedy, "LOGS", fmt.Sprintf("`trainyard logs %d --attempt %d`", j.ID, n))
	}
	return found, do
}

// refusalOf says why an attempt that was asked to end by a signal saved nothing, and what to do.
func refusalOf(over *shim.Over, signal string) (cause, do string) {
	switch {
	case over.Killed:
		return fmt.Sprintf("it was killed, as it had not ended %v after it was asked", over.Grace),
			"give it longer by `grace` in its job file, or have it save less, or sooner; LOGS may say what it did"
	case host.Signal(int32(over.Code)) == signal:
		return "it has no handler for " + signal + ", which ended it",
			"have it handle " + signal + ", save, and end; or name another signal by `checkpoint: {signal}` in its " +
				"job file"
	}
	return fmt.Sprintf("it ended by itself with code %d", over.Code),
		"see LOGS for why it did not save: a worker may have ended before the process that saves. What it saves " +
			"elsewhere than in $TRAINYARD_CHECKPOINT_DIR counts where it prints `TRAINYARD saved`"
}
