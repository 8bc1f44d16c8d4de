package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
)

// words are the commands of Slurm that this program acts as.
var words = []string{"sbatch", "squeue", "scancel", "srun", "scontrol", "sacct", "sinfo"}

// Arguments returns the command line that a program called by the first of args stands for: that of a word of Slurm if
// it is called so, by a link, else its own.
func Arguments(args []string) []string {
	switch name := filepath.Base(args[0]); {
	case !slices.Contains(words, name):
		return args[1:]
	case name == "sbatch":
		return append([]string{name}, args[1:]...)
	default:
		return append([]string{"slurm", name}, args[1:]...)
	}
}

// Code returns the exit code of a program called by a name that ended with code: words of Slurm know one for what
// cannot be done, but srun and sbatch --wait, whose code is that of what they ran.
func Code(name string, code int) int {
	if word := filepath.Base(name); code == 0 || word == "srun" || word == "sbatch" || !slices.Contains(words, word) {
		return code
	}
	return 1
}

// Verbs returns the words as commands of a group, and the command that makes the links.
func Verbs() []*cobra.Command {
	group := term.Group(&cobra.Command{
		Use:   "slurm",
		Short: "Answer as the commands of Slurm do",
		Long: `Answers as the commands of Slurm do, in their words. trainyard slurm-links has
them found by their own names. The host that is asked is that of
$TRAINYARD_STATE, of $TRAINYARD_CONTEXT or of the context in use.`,
	})
	group.AddCommand(newSqueue(), newScancel(), newSrun(), newScontrol(), newSacct(), newSinfo())
	return []*cobra.Command{newLinks(), group}
}

func newLinks() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slurm-links FOLDER",
		Short: "Link sbatch, squeue, srun and others to this program",
		Long: `Makes links in FOLDER by which this program is sbatch, squeue, scancel, srun,
scontrol, sacct and sinfo: scripts and programs written for Slurm find them once
FOLDER is in PATH. It overwrites nothing, and makes none where the commands of a
real Slurm are in PATH, unless --force is given.`,
		Example: `  trainyard slurm-links ~/.local/bin`,
		Args:    term.Exactly("FOLDER"),
	}
	force := cmd.Flags().Bool("force", false, "also where a real Slurm is in PATH")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		program, err := os.Executable()
		if err == nil {
			program, err = filepath.EvalSymlinks(program)
		}
		if err != nil {
			return err
		}
		made, err := link(program, args[0], *force)
		if err != nil {
			return err
		}
		what := "there already"
		if made > 0 {
			what = term.Counted(made, "link") + " made"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s in %s%s\n", what, args[0], pathHint(args[0]))
		return nil
	}
	return cmd
}

// pathHint says how commands in a folder are found, "" if they are.
func pathHint(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil || slices.Contains(filepath.SplitList(os.Getenv("PATH")), full) {
		return ""
	}
	return fmt.Sprintf(`; they are found by: export PATH=%s:"$PATH"`, term.ShellWord(full))
}

// link makes a link for each word in a folder that is there, all of them or none, and returns how many were missing.
func link(program, dir string, force bool) (made int, err error) {
	if info, bad := os.Stat(dir); bad != nil || !info.IsDir() {
		return 0, term.Usagef("slurm-links: %s is no folder, want one that is there, as ~/.local/bin",
			term.ShellWord(dir))
	}
	var missing []string
	for _, word := range words {
		path := filepath.Join(dir, word)
		if found := elsewhere(word, program); found != "" && !force {
			return 0, term.Refusedf("slurm-links: %s is of a real Slurm, which the links would hide; want another "+
				"machine, or --force", found)
		}
		switch _, bad := os.Lstat(path); {
		case errors.Is(bad, fs.ErrNotExist):
			missing = append(missing, path)
		case bad != nil:
			return 0, bad
		case !same(path, program):
			return 0, term.Refusedf("slurm-links: %s is there already, and is not overwritten", path)
		}
	}
	for i, path := range missing {
		if err = os.Symlink(program, path); err == nil {
			continue
		}
		for _, done := range missing[:i] {
			_ = os.Remove(done)
		}
		return 0, err
	}
	return len(missing), nil
}

// elsewhere returns the command of a name that is in PATH and is not this program; "" = none.
func elsewhere(word, program string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path, err := exec.LookPath(filepath.Join(dir, word))
		if err == nil && strings.ContainsRune(path, filepath.Separator) && !same(path, program) {
			return path
		}
	}
	return ""
}

// same reports whether two paths lead to one file.
func same(path, other string) bool {
	a, err := os.Stat(path)
	b, bad := os.Stat(other)
	return err == nil && bad == nil && os.SameFile(a, b)
}
