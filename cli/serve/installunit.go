package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/procs"
)

// installing are the flags that make a unit of systemd of serve.
type installing struct {
	install, show, remove bool
}

// define adds the flags.
func (f *installing) define(fs *pflag.FlagSet) {
	fs.BoolVar(&f.install, "install", false, "write a unit of systemd that serves with the other flags, and leave")
	fs.BoolVar(&f.show, "print", false, "with --install: only print it")
	fs.BoolVar(&f.remove, "uninstall", false, "remove that unit, and leave")
}

// asked reports whether one of the flags was given.
func (f *installing) asked() bool { return f.install || f.show || f.remove }

// check names the flag that does not go with the others.
func (f *installing) check(flags *serveFlags) error {
	switch {
	case f.remove && (f.install || f.show):
		return term.Usagef("serve: --uninstall next to --install, want one of them")
	case f.show && !f.install:
		return term.Usagef("serve: --print is for --install")
	case f.install && flags.restore != "":
		return term.Usagef("serve: --install next to --restore, want one of them: the unit would restore at each " +
			"start; restore first, by serve without --install")
	}
	return nil
}

// run writes, prints or removes the unit: one of the machine as root, else one of the user.
func (f *installing) run(cmd *cobra.Command, flags *serveFlags) error {
	if err := f.check(flags); err != nil {
		return err
	}
	path, control, target, err := unitPlace()
	if err != nil {
		return err
	}
	if f.remove {
		return removeUnit(cmd, path, control)
	}
	text, err := unitText(cmd, flags, target)
	if err != nil {
		return err
	}
	if f.show {
		return term.WriteText(cmd.OutOrStdout(), text)
	}
	if there, failed := os.ReadFile(path); failed == nil && string(there) != text {
		return &term.CodedError{Code: term.ExitConflict, Err: fmt.Errorf("serve: %s is there already, and is another "+
			"one; --uninstall removes it", path)}
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s is written; it is started, now and at each start, by:\n  %s daemon-reload && "+
		"%s enable --now trainyard\n", path, control, control)
	if os.Getuid() != 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "and goes on when you log out, by:\n  loginctl enable-linger\n")
	}
	return nil
}

// unitPlace returns where the unit is, what controls it, and what wants it.
func unitPlace() (path, control, target string, err error) {
	if os.Getuid() == 0 {
		return "/etc/systemd/system/trainyard.service", "systemctl", "multi-user.target", nil
	}
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "systemd", "user", "trainyard.service"), "systemctl --user", "default.target", err
}

// removeUnit removes the unit, and says how what it started is ended.
func removeUnit(cmd *cobra.Command, path, control string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &term.CodedError{Code: term.ExitNotFound, Err: fmt.Errorf("serve: %s is not there", path)}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s is removed; what it started is ended by:\n  %s disable --now trainyard; %s "+
		"daemon-reload\njobs that run go on\n", path, control, control)
	return nil
}

// unitText is the unit that serves as the flags say, which are checked as serve does.
func unitText(cmd *cobra.Command, flags *serveFlags, target string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	state, err := flags.folder(cmd)
	if err != nil {
		return "", err
	}
	if _, err = flags.checked(cmd, state); err != nil {
		return "", err
	}
	if flags.notify != "" {
		if _, err = flags.notified(); err != nil {
			return "", err
		}
	}
	words, err := servedBy(cmd, program, state)
	if err != nil {
		return "", err
	}
	for i := range words {
		if words[i], err = unitWord(words[i], i > 0); err != nil {
			return "", err
		}
	}
	path, err := unitWord("PATH="+os.Getenv("PATH"), false)
	if err != nil {
		return "", err
	}
	// Jobs outlive serve, in groups of processes of their own. These are given limits next to the group of serve, as
	// cgroup v2 has no controllers below one that has processes. The unit runs in the home of its user, or in /.
	return fmt.Sprintf(`[Unit]
Description=Trainyard runs training jobs on the GPUs of this machine

[Service]
ExecStart=%s
Environment=%s
Delegate=yes
DelegateSubgroup=%s
KillMode=process
Restart=on-failure

[Install]
WantedBy=%s
`, strings.Join(words, " "), path, procs.Subgroup, target), nil
}

// namesFile are the flags whose values are paths, by the folder that serve runs in.
var namesFile = map[string]bool{"tls-cert": true, "tls-key": true, "variability": true, "profiles": true}

// servedBy are the words of a command that serves as the flags say, from whatever folder.
func servedBy(cmd *cobra.Command, program, state string) (words []string, err error) {
	words = []string{program, "serve", "--state=" + state}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		switch list, several := flag.Value.(pflag.SliceValue); {
		case flag.Name == "install" || flag.Name == "print" || flag.Name == "state":
			return
		case several:
			for _, one := range list.GetSlice() {
				words = append(words, "--"+flag.Name+"="+one)
			}
			return
		case value != "" && namesFile[flag.Name] || flag.Name == "notify" && strings.Contains(value, "/"):
			absolute, failed := filepath.Abs(value)
			value, err = absolute, errors.Join(err, failed)
		}
		words = append(words, "--"+flag.Name+"="+value)
	})
	return words, err
}

// unitWord writes a word as systemd reads it, in a command where a dollar stands for itself or elsewhere. A line break
// would end the line of the unit, and is refused.
func unitWord(word string, command bool) (string, error) {
	if strings.ContainsAny(word, "\n\r\x00") {
		return "", term.Usagef("serve: --install: %q has a line break, want none", word)
	}
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word)
	if command {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	return `"` + word + `"`, nil
}
