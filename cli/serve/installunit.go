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

	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
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

// run writes, prints or removes the unit: one of the machine as root, else one of the user.
func (f *installing) run(cmd *cobra.Command, state string) error {
	switch {
	case f.remove && (f.install || f.show):
		return term.Usagef("serve: --uninstall next to --install, want one of them")
	case f.show && !f.install:
		return term.Usagef("serve: --print is for --install")
	}
	path, control, target, err := unitPlace()
	if err != nil {
		return err
	}
	if f.remove {
		return removeUnit(cmd, path, control)
	}
	text, err := unitText(cmd, state, target)
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

// unitText is the unit that serves as the flags say, from the folder that this was called in.
func unitText(cmd *cobra.Command, state, target string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if state, err = client.StateFolder(state); err == nil {
		state, err = filepath.Abs(state)
	}
	if err != nil {
		return "", err
	}
	words := []string{program, "serve", "--state=" + state}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch list, several := flag.Value.(pflag.SliceValue); {
		case flag.Name == "install" || flag.Name == "print" || flag.Name == "state":
		case several:
			for _, value := range list.GetSlice() {
				words = append(words, "--"+flag.Name+"="+value)
			}
		default:
			words = append(words, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	for i := range words {
		if strings.ContainsAny(words[i], "\n\r\x00") {
			return "", term.Usagef("serve: --install: %q has a line break, want none", words[i])
		}
		words[i] = unitWord(words[i], true)
	}
	// jobs outlive serve, in groups of processes of their own
	return fmt.Sprintf(`[Unit]
Description=Trainyard runs training jobs on the GPUs of this machine

[Service]
ExecStart=%s
WorkingDirectory=%s
Environment=%s
Delegate=yes
KillMode=process
Restart=on-failure

[Install]
WantedBy=%s
`, strings.Join(words, " "), strings.ReplaceAll(dir, "%", "%%"), unitWord("PATH="+os.Getenv("PATH"), false),
		target), nil
}

// unitWord writes a word as systemd reads it, in a command where a dollar stands for itself or elsewhere.
func unitWord(word string, command bool) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(word)
	if command {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	return `"` + word + `"`
}
