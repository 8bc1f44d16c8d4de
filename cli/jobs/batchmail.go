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
	for _, word := range trimmed(f.when) {
		for _, one := range mailWords[strings.ToUpper(word)] {
			if !slices.Contains(on, one) {
				on = append(on, one)
			}
		}
	}
	to, _ := f.addresses()
	if len(on) == 0 || len(to) == 0 {
		return
	}
	var ways []any
	for _, address := range to {
		ways = append(ways, map[string]any{"on": on, "mail": address})
	}
	job["notify"] = ways
}

// addresses are where mail is sent, and those of --mail-user where none can be.
func (f *batchMail) addresses() (to, not []string) {
	list := trimmed(f.to)
	if len(list) == 0 {
		if u, err := user.Current(); err == nil {
			list = []string{u.Username}
		}
	}
	for _, address := range list {
		way := task.Notify{Mail: address}
		if way.Validate() != nil || task.CheckArg(address) != nil || len(to) == task.MaxNotify {
			not = append(not, address)
		} else if !slices.Contains(to, address) {
			to = append(to, address)
		}
	}
	return to, not
}

// trimmed are the words of a list by commas.
func trimmed(text string) (words []string) {
	for _, word := range strings.Split(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// warnUnsent warns of words of --mail-type for which no mail is sent, and of addresses to which none can be.
func (f *batchMail) warnUnsent(cmd *cobra.Command) {
	passedOver := func(flag, word string) {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: --%s %s is passed over\n", flag, term.ShellWord(word))
	}
	words := trimmed(f.when)
	for _, word := range words {
		if _, known := mailWords[strings.ToUpper(word)]; !known {
			passedOver("mail-type", word)
		}
	}
	if _, not := f.addresses(); len(words) > 0 {
		for _, address := range not {
			passedOver("mail-user", address)
		}
	}
}
