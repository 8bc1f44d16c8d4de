package jobs

import (
	"fmt"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/term"
)

// batchMail are options of sbatch that say when its user is sent mail.
type batchMail struct {
	when, to string
}

// define adds the options.
func (f *batchMail) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.when, "mail-type", "", "`WORDS` for when to send mail, by commas: END, FAIL, REQUEUE, TIME_LIMIT, "+
		"ALL, NONE")
	fs.StringVar(&f.to, "mail-user", "", "`ADDRESS` to send it to (default: you)")
}

// mailWords are Slurm's words for what is mailed, and what they mean here; the others mean nothing.
var mailWords = map[string][]string{"NONE": nil, "END": {task.OnFinished, task.OnFailed}, "FAIL": {task.OnFailed},
	"REQUEUE": {task.OnPreempted}, "TIME_LIMIT": {task.OnTimeout}, "INVALID_DEPEND": {task.OnFailed},
	"ALL": {task.OnFinished, task.OnFailed, task.OnPreempted, task.OnTimeout}}

// mails notes when mail is sent as a key of a job.
func (f *batchMail) mails(job map[string]any) {
	var on []string
	for _, word := range strings.Split(f.when, ",") {
		for _, one := range mailWords[strings.ToUpper(word)] {
			if !slices.Contains(on, one) {
				on = append(on, one)
			}
		}
	}
	if len(on) == 0 {
		return
	}
	if f.to == "" {
		if u, err := user.Current(); err == nil {
			f.to = u.Username
		}
	}
	job["notify"] = map[string]any{"on": on, "mail": f.to}
}

// warnUnsent warns of words of --mail-type for which no mail is sent.
func (f *batchMail) warnUnsent(cmd *cobra.Command) {
	for _, word := range strings.Split(f.when, ",") {
		if _, known := mailWords[strings.ToUpper(word)]; !known && word != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: --mail-type %s is passed over\n", term.ShellWord(word))
		}
	}
}
