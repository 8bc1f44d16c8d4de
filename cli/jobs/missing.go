package jobs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
)

// warnMissing reports jobs whose program, or folder, is not there, before they wait for hours only to fail. They are
// submitted all the same: it may be there by the time they start, made by a job before them.
func warnMissing(cmd *cobra.Command, jobs []jobfile.Job) {
	if quiet, _ := cmd.Flags().GetBool("quiet"); quiet {
		return
	}
	const most = 3
	passed, reported := local.Passed(), []string(nil)
	for i := range jobs {
		t := &jobs[i].Task
		if strings.Contains(t.Command[0], "$TRAINYARD_") || strings.Contains(t.Command[0], "${TRAINYARD_") {
			continue // known at its start
		}
		env := slices.Clip(passed)
		if path, own := t.Env["PATH"]; own {
			env = append(env, "PATH="+path)
		}
		why := shim.Missing(t.Command[0], t.Dir, env)
		if why == "" || slices.Contains(reported, why) {
			continue
		}
		if reported = append(reported, why); len(reported) > most {
			fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: warning: so it is with others")
			return
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: job %s will fail as things are: %s\n", jobs[i].Spec.Name,
			api.Printable(why))
	}
}
