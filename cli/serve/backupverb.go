package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

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
}

func newBackup() *cobra.Command {
	var state string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the log of a state folder to a file, also while it is served",
		Long: `Writes all jobs that the state folder knows, what became of them, and the
tokens to a new file. The folder may be served meanwhile, and nothing waits for
it: the copy is the log as it is after some batch of events, whole.

The file has the commands and the variables of jobs, so only you can read it.
It has neither outputs nor checkpoints: a restored job that saved in the state
folder starts from zero. Have long jobs save elsewhere (checkpoint: {dir: ...}).

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
			b.Running, b.Tokens, b.Bytes})
	}
	return term.WriteText(cmd.OutOrStdout(), fmt.Sprintf("%s: %s, %d running, log up to event %d%s, %.1f MiB; without "+
		"outputs and checkpoints\n", file, term.Counted(b.Jobs, "job"), b.Running, b.Events, withTokens(b),
		float64(b.Bytes)/(1<<20)))
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
	return nil
}
