package jobs

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/internal/strictyaml"
)

// shell are the flags that say what a command's job inherits of the shell that it is submitted from.
type shell struct {
	env    []string
	files  []string
	none   bool
	target func() client.Target // the host that is to take the jobs
	took   string               // what to say once the jobs are submitted; "" = nothing was taken
}

// define adds the flags.
func (s *shell) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&s.env, "env", nil, "`NAME[=VALUE]`: a variable of the command, of this shell where no value is "+
		"given; repeatable")
	fs.StringArrayVar(&s.files, "env-file", nil, "`FILE` of lines NAME=VALUE, variables of the command; repeatable")
	fs.BoolVar(&s.none, "no-env", false, "the command does not inherit the variables of this shell")
}

// away reports whether the jobs go to another machine, or through a connection to one, where this shell means nothing.
func (s *shell) away() bool {
	if s.target == nil {
		return false
	}
	to := s.target()
	return to.Away()
}

// whole reports whether the job has all of this shell.
func (s *shell) whole() bool { return !s.none && !s.away() }

// passed are the variables of ours that jobs are given which inherit no others: they run with the PATH of who submits
// them, not that of the manager. A host that is away is given none.
func (s *shell) passed() map[string]string {
	if s.away() {
		return nil
	}
	env := make(map[string]string)
	for _, kv := range local.Passed() {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// taken returns the variables that the job inherits, nil if there are none. No value is in any
// error.
func (s *shell) taken(cmd *cobra.Command) (env map[string]string, err error) {
	switch {
	case !s.whole() && len(s.env)+len(s.files) > 0:
		env = s.passed()
	case s.whole():
		env = make(map[string]string)
		for _, kv := range os.Environ() {
			if name, value, _ := strings.Cut(kv, "="); task.Inherits(name, value) {
				env[name] = value
			}
		}
		s.took = "took " + term.Counted(len(env), "variable") + " of this shell (--no-env: none)\n"
	}
	for _, path := range s.files {
		if env, err = withFile(env, path); err != nil {
			return nil, term.Usagef("--env-file %s: %w", path, err)
		}
	}
	for _, given := range s.env {
		name, value, valued := strings.Cut(given, "=")
		if !valued {
			if value, valued = os.LookupEnv(name); !valued {
				return nil, term.Usagef("--env %s: this shell has no such variable, want NAME=VALUE", name)
			}
		}
		if env, err = with(env, name, value); err != nil {
			return nil, term.Usagef("--env: %w", err)
		}
	}
	if err = task.CheckInherited(env); err != nil {
		return nil, term.Usagef("%s: %w; --no-env inherits none", term.OwnName(cmd), err)
	}
	return env, nil
}

// with adds a variable that the user names.
func with(env map[string]string, name, value string) (map[string]string, error) {
	if err := task.CheckEnvName(name); err != nil {
		return nil, err
	}
	if err := task.CheckEnvValue(name, value); err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	if env == nil {
		env = make(map[string]string)
	}
	env[name] = value
	return env, nil
}

// withFile adds the variables of a file: lines NAME=VALUE, the value as it stands. Empty lines and those that start
// with # are passed over.
func withFile(env map[string]string, path string) (map[string]string, error) {
	text, err := strictyaml.ReadFile(path, task.MaxSize)
	if err != nil {
		return nil, err
	}
	if len(text) > task.MaxSize {
		return nil, fmt.Errorf("more than %d bytes, want less", task.MaxSize)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("no text in UTF-8, want lines NAME=VALUE")
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d has no =, want NAME=VALUE", n)
		}
		if env, err = with(env, name, value); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return env, nil
}
