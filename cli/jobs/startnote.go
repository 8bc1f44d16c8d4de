package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/term"
)

// noteStart says, to someone at a terminal, when the first of jobs that were just submitted is to start. Their numbers
// are printed before: it takes foreseeing at most, and a host that cannot say costs nothing.
func noteStart(cmd *cobra.Command, c *api.Client, jobs []api.Estimate) {
	_, seen := term.Terminal(cmd.ErrOrStderr())
	if !seen || len(jobs) == 0 || jobs[0].ID < 0 {
		return
	}
	limited, cancel := context.WithTimeout(cmd.Context(), foreseeing)
	defer cancel()
	if doc, err := c.Why(limited, strconv.Itoa(jobs[0].ID), foreseeing, 0); err == nil {
		fmt.Fprint(cmd.ErrOrStderr(), startLine(&doc, time.Now()))
	}
}

// startLine is a line about the start of a job; "" of one that is done.
func startLine(doc *api.Why, now time.Time) string {
	ahead := ""
	if doc.AheadAll > 0 {
		ahead = fmt.Sprintf("; %d ahead", doc.AheadAll)
	}
	switch j := &doc.Job; {
	case j.State == "done":
		return ""
	case len(j.GPUs) > 0:
		return fmt.Sprintf("job %d has its %s\n", j.ID, term.Counted(len(j.GPUs), doc.Unit))
	case known(j.Start):
		return fmt.Sprintf("job %d starts %s%s\n", j.ID, within(j.Start, now), ahead)
	default:
		return fmt.Sprintf("job %d waits%s: no idea yet when it starts\n", j.ID, ahead)
	}
}
