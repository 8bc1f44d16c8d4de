package jobs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// standardInput stands for the script where it is read from there.
const standardInput = "standard input"

// mostScript is how long a script may be, in bytes.
const mostScript = 1 << 20

// isTerminal reports whether standard input is a terminal, at which no script waits.
func isTerminal(cmd *cobra.Command) bool {
	in, is := cmd.InOrStdin().(*os.File)
	return is && xterm.IsTerminal(int(in.Fd()))
}

func noScript(cmd *cobra.Command) error {
	return term.Usagef("sbatch: no script, want SCRIPT ARGUMENTS..., or one on standard input; see `%s --help`",
		cmd.CommandPath())
}

// text returns the script that args name, the one of standard input where they name none, or one of the command that is
// given in its place.
func (f *batchMore) text(cmd *cobra.Command, args []string) (text []byte, err error) {
	f.wrapped = cmd.Flags().Changed("wrap")
	switch command := f.given(cmd); {
	case f.wrapped && len(args) > 0:
		return nil, term.Usagef("sbatch: %s next to --wrap, want one of them", term.ShellWord(args[0]))
	case f.wrapped && strings.TrimSpace(command) == "":
		return nil, term.Usagef("sbatch: --wrap without a command, want one for a shell")
	case f.wrapped:
		return []byte("#!/bin/sh\n" + command), nil
	case len(args) > 0:
		return strictyaml.ReadFile(args[0], mostScript)
	}
	if text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), mostScript+1)); err != nil {
		return nil, fmt.Errorf("sbatch: %s: %w", standardInput, err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, noScript(cmd)
	}
	f.typed = string(text)
	return text, nil
}

// given is the command in the place of a script, "" where there is none.
func (f *batchMore) given(cmd *cobra.Command) string {
	return cmd.Flags().Lookup("wrap").Value.String()
}

// command is what the job runs: the script by its interpreter, or the command in its place.
func (f *batchMore) command(run []string, path string, args []string) ([]string, error) {
	switch {
	case f.wrapped:
		return []string{"/bin/sh", "-c", f.wrap}, nil
	case f.typed == "":
		return append(append(run, path), args...), nil
	}
	if !takesText(run) {
		return nil, fmt.Errorf("%s runs it, want a script for a shell or Python, or one in a file",
			strings.Join(run, " "))
	}
	return append(run, "-c", f.typed, "sbatch"), nil
}

// takesText reports whether an interpreter runs the text that follows -c.
func takesText(run []string) bool {
	at := slices.IndexFunc(run, func(word string) bool { return word[0] != '-' && filepath.Base(word) != "env" })
	if at < 0 {
		return false
	}
	name := strings.TrimRight(filepath.Base(run[at]), "0123456789.")
	return slices.Contains([]string{"sh", "bash", "dash", "ksh", "zsh", "python"}, name)
}

// await waits until the jobs of a script are done, where that is asked for, and ends with the worst of their exit codes
// as sbatch does, 1 where one has none.
func (f *batchFlags) await(cmd *cobra.Command, c *api.Client, doc *api.Submitted) error {
	if !f.wait {
		return nil
	}
	client.Outlast(cmd, c)
	ids := make([]string, len(doc.Jobs))
	for i := range doc.Jobs {
		ids[i] = strconv.Itoa(doc.Jobs[i].ID)
	}
	docs, err := waitFor(cmd.Context(), c, ids)
	if err != nil {
		if cmd.Context().Err() != nil {
			return &term.CodedError{Code: term.ExitInterrupted, Err: fmt.Errorf("sbatch: interrupted; job %s goes on",
				ids[len(docs)])}
		}
		return err
	}
	worst := 0
	for i := range docs {
		worst = max(worst, codeOf(&docs[i]))
	}
	if worst == 0 {
		return nil
	}
	return &term.CodedError{Code: worst, Err: firstFailed(docs, true)}
}

// codeOf is the exit code of a job that is done, 1 if a signal ended it or it was cancelled.
func codeOf(j *api.Job) int {
	const signalled = 128
	switch {
	case j.Outcome == "finished":
		return 0
	case j.Outcome == "failed" && 0 < j.ExitCode && j.ExitCode <= signalled:
		return j.ExitCode
	}
	return 1
}
