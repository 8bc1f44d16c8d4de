package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/manager"
	"github.com/trainyard/trainyard/manager/backup"
)

// backupDoc is what backup prints with --json.
type backupDoc struct {
	Schema  string    `json:"schema"`
	File    string    `json:"file"`
	Made    time.Time `json:"made"`
	Events  uint64    `json:"events"`
	Jobs    int       `json:"jobs"`
	Running int       `json:"running"` // of the jobs
	Tokens  bool      `json:"tokens"`  // they are in it
	Bytes   int64     `json:"bytes"`
	// where jobs that are not done save: not in it
	Checkpoints []backupCheckpoints `json:"checkpoints"`
	Lost        []backupLost        `json:"lost"` // jobs that lack what the folder should have
}

// backupLost is a job that is held, as what it needs is lost.
type backupLost struct {
	Job  int    `json:"job"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// backupCheckpoints is where a job saves.
type backupCheckpoints struct {
	Job  int    `json:"job"`
	Name string `json:"name"`
	Path string `json:"path"`
	Own  bool   `json:"own"` // in the state folder
}

func newBackup() *cobra.Command {
	var state string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the log of a state folder to a file, also while it is served",
		Long: `Writes all jobs that the state folder knows, what became of them, the tokens,
and the environments and scripts that jobs which are not done were submitted
with to a new file. The folder may be served meanwhile, and nothing waits for
it: the copy is the log as it is after some batch of events, whole.

The file has the commands and the variables of jobs, passwords among them, as
the state folder has: only you can read it, so keep it as you keep these.

Not in it are outputs and checkpoints: these may be terabytes, and many lie in
folders of your own, of which you make backups as of other data. It names those
of jobs that are not done. A restored job that finds nothing there starts from
zero, and one that saved in the state folder itself does so unless you copy that
folder as well. Have long jobs save elsewhere (checkpoint: {dir: ...}).

` + "`trainyard serve --restore FILE`" + ` goes on from it in an empty folder.`,
		Example: `  trainyard backup monday.backup
  trainyard serve --state /srv/trainyard --restore monday.backup`,
		Args: term.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := term.OnLinux("backup"); err != nil {
				return err
			}
			dir, err := client.StateFolder(state)
			if err != nil {
				return err
			}
			return makeBackup(cmd, dir, args[0], asJSON)
		},
	}
	client.AddState(cmd, &state)
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document instead of the text")
	return cmd
}

// makeBackup writes the backup of a folder and says what it has.
func makeBackup(cmd *cobra.Command, dir, file string, asJSON bool) error {
	b, err := manager.Backup(cmd.Context(), dir, file, term.OwnBuild().Version)
	switch {
	case errors.Is(err, fs.ErrExist):
		return &term.CodedError{Code: term.ExitConflict, Err: fmt.Errorf("%s is there already, want the name of a new "+
			"file: no backup takes the place of another", file)}
	case err != nil:
		return err
	case asJSON:
		return term.WriteJSON(cmd.OutOrStdout(), backupDoc{"trainyard.backup/v1", file, b.Made, b.Events, b.Jobs,
			b.Running, b.Tokens, b.Bytes, checkpointDocs(b), lostDocs(b)})
	}
	return term.WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s: %s, %d running, log up to event %d%s, %.1f MiB; without "+
		"outputs and checkpoints\n%s", file, term.Counted(b.Jobs, "job"), b.Running, b.Events, withTokens(b),
		float64(b.Bytes)/(1<<20), notIn(b)+held(b, "will be held after a restore")))
}

func lostDocs(b *manager.BackedUp) []backupLost {
	docs := make([]backupLost, len(b.Lost))
	for i, l := range b.Lost {
		docs[i] = backupLost{int(l.Job), l.Name, l.Why}
	}
	return docs
}

// held names the jobs that cannot start from a backup, one a line.
func held(b *manager.BackedUp, how string) string {
	if len(b.Lost) == 0 {
		return ""
	}
	lines := make([]string, len(b.Lost))
	for i, l := range b.Lost {
		lines[i] = fmt.Sprintf("job %d (%s): %s", l.Job, api.Printable(l.Name), api.Printable(l.Why))
	}
	return "these " + how + ", as it lacks what they were submitted with; cancel them and submit them again:\n" +
		shortened(lines)
}

func checkpointDocs(b *manager.BackedUp) []backupCheckpoints {
	docs := make([]backupCheckpoints, len(b.Checkpoints))
	for i, c := range b.Checkpoints {
		docs[i] = backupCheckpoints{int(c.Job), c.Name, c.Path, c.Own}
	}
	return docs
}

// mostNamed is how many jobs are named; --json names all.
const mostNamed = 10

// listed names folders, one a line, each with its job.
func listed(folders []manager.CheckpointFolder) string {
	lines := make([]string, len(folders))
	for i := range folders {
		c := &folders[i]
		lines[i] = fmt.Sprintf("job %d (%s): %s", c.Job, api.Printable(c.Name), api.Printable(c.Path))
	}
	return shortened(lines)
}

// shortened are the first of some lines, indented, and how many more there are.
func shortened(lines []string) string {
	more := len(lines) - mostNamed
	if more > 0 {
		lines = append(slices.Clip(lines[:mostNamed]), fmt.Sprintf("and those of %d more", more))
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}

// notIn says what of jobs that are to go on a backup does not have.
func notIn(b *manager.BackedUp) string {
	if len(b.Checkpoints) == 0 {
		return ""
	}
	return "copy these as well, or their jobs start from zero:\n" + listed(b.Checkpoints)
}

func withTokens(b *manager.BackedUp) string {
	if b.Tokens {
		return ", tokens"
	}
	return ""
}

// restoreInto fills the folder from the backup that --restore names, and says what that means.
func (f *serveFlags) restoreInto(cmd *cobra.Command, dir string) error {
	b, err := manager.Restore(f.restore, dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &term.CodedError{Code: term.ExitNotFound, Err: fmt.Errorf("--restore: %w, want a file that `trainyard "+
			"backup` wrote", err)}
	case errors.Is(err, backup.ErrBroken):
		return term.Malformed(fmt.Errorf("--restore: %w", err))
	case err != nil:
		return managerError(notOurs(fmt.Errorf("--restore: %w", err)))
	}
	text := fmt.Sprintf("trainyard: restored %s as of %s", term.Counted(b.Jobs, "job"),
		b.Made.Local().Format("2006-01-02 15:04:05"))
	if b.Running > 0 {
		text += fmt.Sprintf("; %d that ran then start again: see to it that they run nowhere else", b.Running)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), text)
	if len(b.Lost) > 0 {
		fmt.Fprint(cmd.ErrOrStderr(), "trainyard: ", held(b, "are held"))
	}
	lost := slices.DeleteFunc(b.Checkpoints, func(c manager.CheckpointFolder) bool { return !c.Empty() })
	if len(lost) > 0 {
		fmt.Fprint(cmd.ErrOrStderr(), "trainyard: start from zero, as no checkpoint is there, unless you stop this, "+
			"put them back and start it again:\n", listed(lost))
	}
	return nil
}
