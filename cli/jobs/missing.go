package jobs

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/jobfile"
	"github.com/trainyard/trainyard/manager/notify"
)

// warnMissing reports jobs whose program, or folder, is not there, before they wait for hours only to fail. They are
// submitted all the same: it may be there by the time they start, made by a job before them.
func warnMissing(cmd *cobra.Command, jobs []jobfile.Job) {
	if quiet, _ := cmd.Flags().GetBool("quiet"); quiet {
		return
	}
	warnUnheard(cmd, jobs)
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

// warnUnheard reports ways of notify that cannot be gone as things are, each once.
func warnUnheard(cmd *cobra.Command, jobs []jobfile.Job) {
	var reported []string
	for i := range jobs {
		for k := range jobs[i].Task.Notify {
			why := unheard(&jobs[i].Task.Notify[k])
			if why != "" && !slices.Contains(reported, why) {
				reported = append(reported, why)
				fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: job %s: notify: %s\n", jobs[i].Spec.Name, why)
			}
		}
	}
}

// unheard says why no notice can be sent in a way; "" = it may be.
func unheard(n *task.Notify) string {
	program, file := n.Run, n.Webhook
	switch {
	case n.Desktop:
		program = "notify-send"
	case n.Mail != "":
		program = notify.Sendmail()
	}
	var err error
	if program != "" {
		_, err = exec.LookPath(program)
	} else {
		err = notify.CheckWebhook(file)
	}
	if err != nil {
		return api.Printable(err.Error())
	}
	return ""
}
