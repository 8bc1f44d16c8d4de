package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager/access"
)

// finding is what one check of doctor found.
type finding struct {
	Check string `json:"check"` // what was looked at
	State string `json:"state"` // ok, note or wrong
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // about a note or what is wrong
}

// The states of a finding: note is for what may well be meant so.
const (
	fine  = "ok"
	note  = "note"
	wrong = "wrong"
)

// doctorDoc is what doctor prints with --json.
type doctorDoc struct {
	Schema   string    `json:"schema"`
	State    string    `json:"state"` // folder
	OK       bool      `json:"ok"`    // nothing is wrong
	Findings []finding `json:"findings"`
}

// patient is what doctor looks at.
type patient struct {
	dir   string     // state folder
	info  *api.Info  // of the manager; nil = none answers
	nodes *api.Nodes // nil = not known
	jobs  *api.Jobs  // all; nil = not known
	err   error      // why no manager answers, or why it did not answer all
}

func newDoctor() *cobra.Command {
	var state string
	var asJSON, repair bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the set-up, and say what to do",
		Long: `Checks the state folder and the space on its disk, whether a manager answers,
versions, GPUs and their driver, GPUs that are given to no job, how processes
are kept together (cgroups), the program itself, the clock, tokens, jobs that
lose work when they are stopped, and what jobs left behind. It changes nothing.
Exit code 1: something is wrong. A note may well be meant so.

--repair is for a folder that serve refuses because of its log. It copies the
log, quarantines what cannot be read or contradicts the rest, moves away what
the folder has of attempts that the log does not know, and says what is lost.`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := term.OnLinux("doctor"); err != nil {
				return err
			}
			dir, err := client.StateFolder(state)
			if err != nil {
				return err
			}
			if repair {
				return repairFolder(cmd.OutOrStdout(), dir, asJSON)
			}
			p := meet(cmd.Context(), dir)
			return p.report(cmd.OutOrStdout(), p.examine(cmd.Context()), asJSON)
		},
	}
	client.AddState(cmd, &state)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document instead of lines")
	cmd.Flags().BoolVar(&repair, "repair", false,
		"make a folder that serve refuses one that it takes, as far as its log can be used")
	return cmd
}

// answerWithin is how long a manager may take to answer doctor, who comes when it may be stuck.
const answerWithin = 5 * time.Second

// meet asks the manager of a folder, if there is one, for all it knows.
func meet(ctx context.Context, dir string) *patient {
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	p := &patient{dir: dir}
	c, err := (&client.Target{State: dir}).Dial()
	if err != nil {
		p.err = err
		return p
	}
	defer c.Close()
	info, err := c.Info(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", answerWithin)
	}
	if p.err = err; err != nil {
		return p
	}
	p.info = &info
	nodes, err := c.Nodes(ctx)
	if err == nil {
		p.nodes = &nodes
	}
	jobs, err2 := c.Jobs(ctx, api.Filter{})
	if err2 == nil {
		p.jobs = &jobs
	}
	p.err = cmp.Or(err, err2)
	return p
}

// examine makes all checks.
func (p *patient) examine(ctx context.Context) (all []finding) {
	for _, check := range []func() []finding{p.folder, p.disk, p.manager, p.versions,
		func() []finding { return p.driver(ctx) }, p.devices, p.cgroups, p.program,
		p.clock, p.tokens, p.saves, p.leftovers} {
		all = append(all, check()...)
	}
	return all
}

// report prints the findings. The error is that something is wrong.
func (p *patient) report(w io.Writer, all []finding, asJSON bool) error {
	var sick []string
	for i := range all {
		if all[i].State == wrong {
			sick = append(sick, all[i].Check)
		}
	}
	var err error
	if asJSON {
		err = term.WriteJSON(w, doctorDoc{"trainyard.doctor/v1", p.dir, len(sick) == 0, all})
	} else {
		err = term.WriteText(w, findingsText(all))
	}
	if err == nil && len(sick) > 0 {
		err = fmt.Errorf("%s wrong: %s", term.Counted(len(sick), "check"), strings.Join(sick, ", "))
	}
	return err
}

// findingsText lists findings, and below each what to do.
func findingsText(all []finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%-5s  %-12s  %s\n", f.State, f.Check, f.Found)
		if f.Do != "" {
			fmt.Fprintf(&b, "%21s→ %s\n", "", f.Do)
		}
	}
	return b.String()
}

// manager says whether a manager answers and, if not, whether one has the folder all the same.
func (p *patient) manager() []finding {
	if p.info != nil {
		all := []finding{{"manager", fine, fmt.Sprintf("process %d under %s since %s answers", p.info.PID,
			p.info.System, client.When(p.info.Since, time.Now())), ""}}
		if p.err != nil {
			all = append(all, finding{"manager", wrong, "it does not report all: " + term.OneLine(p.err.Error()),
				"look into what serve wrote to its stderr"})
		}
		for _, problem := range p.info.Problems {
			all = append(all, finding{"manager", note, api.Printable(problem),
				"all else goes on; serve says more on its stderr"})
		}
		return all
	}
	pid, held := client.Holder(p.dir)
	if held {
		return []finding{{"manager", wrong, fmt.Sprintf("process %s has the folder and does not answer: %v", pid,
			term.OneLine(p.err.Error())),
			fmt.Sprintf("if it is stopped, `kill -CONT %s`; else `kill %s` and serve again: jobs go on meanwhile", pid,
				pid)}}
	}
	return []finding{{"manager", note, "none serves the folder",
		"start one by `trainyard serve`; jobs that were left running are taken over"}}
}

// tokens says whether those who are admitted over the network can be read.
func (p *patient) tokens() []finding {
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return []finding{{"tokens", fine, "none", ""}}
	}
	list, err := access.OpenTokens(p.dir).List()
	if err != nil {
		found, do, _ := strings.Cut(term.OneLine(err.Error()), "; ")
		return []finding{{"tokens", wrong, found, do}}
	}
	return []finding{{"tokens", fine, term.Counted(len(list), "token"), ""}}
}

// versions compares ours with that of the manager, which goes on with what it was started from.
func (p *patient) versions() []finding {
	own := term.OwnBuild().Version
	if p.info == nil {
		return []finding{{"version", fine, own, ""}}
	}
	again := "stop serve by Ctrl-C and start it again: jobs go on meanwhile"
	if p.info.Version != own {
		return []finding{{"version", note, fmt.Sprintf("this is %s, the manager is %s", own, p.info.Version), again}}
	}
	if file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.info.PID)); err == nil &&
		strings.HasSuffix(file, " (deleted)") {
		return []finding{{"version", note, "the program of the manager was replaced since it was started", again}}
	}
	return []finding{{"version", fine, own + ", the manager as well", ""}}
}
