package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/contexts"
	"github.com/trainyard/trainyard/cli/term"
)

// Variables of the environment that say which host is meant where no flag does. Both at once are an error.
const (
	StateVariable   = "TRAINYARD_STATE"
	ContextVariable = "TRAINYARD_CONTEXT"
)

// socketVariable is set in the environment of a job: STATE/jobs/JOB/ATTEMPT/socket, where STATE is the folder of its
// manager.
const socketVariable = "TRAINYARD_SOCKET"

// Target says which host a verb works with, as its flags do. It is resolved in this order: a flag, the environment, the
// manager of the job that the verb runs in, the context chosen by `context use`, the state folder of the user.
type Target struct {
	State   string // flag --state
	Context string // flag --context
}

// AddFlags gives a verb the flags that say which host is meant.
func (t *Target) AddFlags(cmd *cobra.Command) {
	AddState(cmd, &t.State)
	AddContext(cmd, &t.Context)
}

// AddContext gives a verb the flag that names a context.
func AddContext(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "context", "",
		"`NAME` of a host kept by trainyard context (default: $"+ContextVariable+", else the one in use)")
	term.CompleteFlag(cmd, "context", term.ListOf(contextNames))
}

// AddState gives a verb that is for a machine alone the flag that names its state folder.
func AddState(cmd *cobra.Command, state *string) {
	cmd.Flags().StringVar(state, "state", "",
		"state `FOLDER` of the manager (default: $"+StateVariable+", else that of the user)")
	_ = cmd.MarkFlagDirname("state")
}

// contextNames offers the contexts there are.
func contextNames() (names []string) {
	path, err := contexts.Path()
	if err != nil {
		return nil
	}
	file, err := contexts.Load(path)
	if err != nil {
		return nil
	}
	for i := range file.Contexts {
		names = append(names, file.Contexts[i].Name)
	}
	return names
}

// StateFolder returns the state folder that a flag, the environment or the user's home names, for what is done on this
// machine.
func StateFolder(flag string) (string, error) {
	if dir := cmp.Or(flag, os.Getenv(StateVariable)); dir != "" {
		return dir, nil
	}
	return userFolder()
}

// userFolder is the state folder of the user.
func userFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "trainyard"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", term.Usagef("no state folder: %w; give --state", err)
	}
	return filepath.Join(home, ".local", "state", "trainyard"), nil
}

// choice is the host that is meant.
type choice struct {
	contexts.Context
	named  bool // by a name of contexts.yaml
	silent bool // a flag says so: it need not be named to the user
}

// choose resolves the target.
func (t *Target) choose() (choice, error) {
	state, name := os.Getenv(StateVariable), os.Getenv(ContextVariable)
	switch {
	case t.State != "" && t.Context != "":
		return choice{}, term.Usagef("--state %s and --context %s are both given, want one", t.State, t.Context)
	case t.State != "":
		return choice{Context: contexts.Context{State: t.State}, silent: true}, nil
	case t.Context != "":
		return named(t.Context, true)
	case state != "" && name != "":
		return choice{}, term.Usagef("$%s and $%s are both set, want one", StateVariable, ContextVariable)
	case name != "":
		return named(name, false)
	case state != "":
		return choice{Context: contexts.Context{State: state}}, nil
	}
	if dir := ownManager(os.Getenv(socketVariable)); dir != "" {
		return choice{Context: contexts.Context{State: dir}}, nil
	}
	if c, found, err := current(); found || err != nil {
		return c, err
	}
	dir, err := userFolder()
	return choice{Context: contexts.Context{State: dir}}, err
}

// ownManager returns the state folder of the manager of the job that has this socket; "" if there is none.
func ownManager(socket string) string {
	if socket == "" {
		return ""
	}
	dir := filepath.Join(filepath.Dir(socket), "..", "..", "..")
	if _, err := os.Stat(filepath.Join(dir, "control")); err != nil {
		return ""
	}
	return dir
}

// named returns the context of a name.
func named(name string, silent bool) (choice, error) {
	file, err := loadContexts()
	if err != nil {
		return choice{}, err
	}
	c, err := file.Find(name)
	if err != nil {
		return choice{}, term.Usage(err)
	}
	return choice{*c, true, silent}, nil
}

// current returns the context in use, if there is one.
func current() (c choice, found bool, err error) {
	file, err := loadContexts()
	if err != nil || file.Current == "" {
		return choice{}, false, err
	}
	c, err = named(file.Current, false)
	return c, true, err
}

func loadContexts() (*contexts.File, error) {
	path, err := contexts.Path()
	if err != nil {
		return new(contexts.File), nil // no home: no contexts
	}
	file, err := contexts.Load(path)
	return file, ContextError(err)
}

// ContextError gives an error of the file of contexts its exit code.
func ContextError(err error) error {
	switch {
	case errors.Is(err, contexts.ErrUnknown):
		return term.Usage(err)
	case errors.Is(err, contexts.ErrExposed):
		return &term.CodedError{Code: term.ExitPermission, Err: err}
	case errors.Is(err, contexts.ErrDamaged):
		return term.Malformed(err)
	}
	return err
}

// Dial reaches the host that is meant.
func (t *Target) Dial() (*api.Client, error) {
	c, err := t.choose()
	if err != nil {
		return nil, err
	}
	return c.dial()
}

func (c *choice) dial() (*api.Client, error) {
	switch c.Kind() {
	case "server":
		return c.dialServer()
	case "command":
		return api.DialCommand("context "+c.Name, c.Command), nil
	}
	a, err := api.Dial(c.State)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NoManager(c.State, err)
	}
	return a, ApiError(err)
}

// NoManager is the error of a folder that no manager serves.
func NoManager(dir string, err error) error {
	if errors.Is(err, api.ErrForbidden) {
		return ApiError(fmt.Errorf("%s: %w", dir, err))
	}
	if errors.Is(err, fs.ErrPermission) {
		return ApiError(fmt.Errorf("%s: %w: its socket is not open to you", dir, api.ErrForbidden))
	}
	return ApiError(fmt.Errorf("%s: %w", dir, api.ErrNoManager))
}

// dialServer reaches a server on the network, with the token and the certificates that the context names.
func (c *choice) dialServer() (*api.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("context %s: ca: %w", c.Name, err)
		}
		if config.RootCAs = x509.NewCertPool(); !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, term.Malformed(fmt.Errorf("context %s: ca: %s has no certificate, want some in PEM", c.Name,
				c.CA))
		}
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, term.Malformed(fmt.Errorf("context %s: cert and key: %w", c.Name, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	token := ""
	if c.TokenFile != "" {
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("context %s: token_file: %w", c.Name, err)
		}
		token = strings.TrimSpace(string(b))
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, term.Malformed(fmt.Errorf("context %s: token_file: %s holds more than a token, want the one "+
				"line that `trainyard token create` prints", c.Name, c.TokenFile))
		}
	}
	return api.DialNetwork(c.Address(), token, config), nil
}

// Flag returns the flag that names the host as words of a command line, a blank before them; "" where none was given.
func (t *Target) Flag() string {
	switch {
	case t.Context != "":
		return " --context " + term.ShellWord(t.Context)
	case t.State != "":
		return " --state " + term.ShellWord(t.State)
	}
	return ""
}

// Remote reports whether a context is meant, or cannot be found: not simply a folder of this machine.
func (t *Target) Remote() bool {
	c, err := t.choose()
	return err != nil || c.named
}

// Away reports whether the host is reached through a connection: what this shell has means nothing there.
func (t *Target) Away() bool {
	c, err := t.choose()
	return err == nil && c.Kind() != "state"
}

// collectAt is how much the heap of a verb that asks a host grows, in percent, before garbage is collected: most end
// before they have made 16 MB.
const collectAt = 400

// Asking is a verb that asks a host.
func (t *Target) Asking(ask func(cmd *cobra.Command, c *api.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(collectAt)
		}
		chosen, err := t.choose()
		if err != nil {
			return err
		}
		c, err := chosen.dial()
		if err != nil {
			return err
		}
		defer c.Close()
		return ApiError(chosen.unmanaged(ask(cmd, c, args)))
	}
}

// Changing is Asking for a verb that changes something: it names a context that no flag has named.
func (t *Target) Changing(ask func(cmd *cobra.Command, c *api.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return t.Asking(func(cmd *cobra.Command, c *api.Client, args []string) error {
		t.Announce(cmd)
		return ask(cmd, c, args)
	})
}

// Announce names the context that a verb is about to change, unless a flag has.
func (t *Target) Announce(cmd *cobra.Command) {
	if c, err := t.choose(); err == nil && c.named && !c.silent {
		fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: context %s (%s)\n", c.Name, c.Where())
	}
}

// unmanaged adds to the error that no manager serves a folder how one that has a log is taken up again.
func (c *choice) unmanaged(err error) error {
	coded := (*term.CodedError)(nil)
	if !errors.Is(err, api.ErrNoManager) || errors.Is(err, api.ErrForbidden) || errors.As(err, &coded) {
		return err
	}
	if c.Kind() != "state" {
		return &term.CodedError{Code: term.ExitUnreachable, Err: err}
	}
	return c.resumable(err)
}

// Outlast has a verb that follows something go on with the next manager.
func Outlast(cmd *cobra.Command, c *api.Client) {
	c.Outlast(awayFor, func() { fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: the manager is away; waiting for it") })
}
