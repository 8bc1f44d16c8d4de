package task

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// MaxScript is how many bytes a script may have that a job runs as it was.
const MaxScript = 1 << 20

// Script is the argument of a command that names a script, which the job runs as it was when it was submitted.
type Script struct {
	At  int    `json:"at"`               // index in the command; > 0
	Sum string `json:"sha256,omitempty"` // by which it is kept; "" = not yet
}

func (t *Task) checkScript() error {
	s := &t.Script
	if s.At < 0 || s.At >= len(t.Command) || s.At == 0 && s.Sum != "" {
		return fmt.Errorf("script at %d of a command of %d, want one of its arguments", s.At, len(t.Command))
	}
	if s.Sum != "" && (len(s.Sum) != digestLen || strings.Trim(s.Sum, "0123456789abcdef") != "") {
		return fmt.Errorf("script %q, want a SHA-256 in hexadecimal", short(strings.ToValidUTF8(s.Sum, "?")))
	}
	return nil
}

// interpreters are programs, other than Python, whose first argument that is no option is a script; torchrun is one.
var interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "perl", "ruby", "Rscript", "node", "julia", "torchrun"}

// flags are the options of torchrun that have no value.
var flags = []string{"--standalone", "--no-python", "--no_python", "--use-env", "--use_env"}

// takesValue reports whether the argument behind an option is its value.
func takesValue(program, option string) bool {
	switch {
	case isPython(program):
		return option == "-W" || option == "-X"
	case program == "torchrun":
		return !strings.Contains(option, "=") && !slices.Contains(flags, option)
	case strings.HasSuffix(program, "sh"):
		return !strings.HasPrefix(option, "--") && strings.HasSuffix(strings.ToLower(option), "o") ||
			option == "--rcfile" || option == "--init-file"
	case program == "env":
		return option == "-u" || option == "-C"
	}
	return false
}

// ScriptOf returns the index of the script in a command such as [python, -u, train.py] or [/usr/bin/env, bash, run.sh]:
// the first argument of an interpreter that is no option.
func ScriptOf(command []string) (int, error) {
	const wanted = "want a program and its script, as in [python, train.py] or [bash, run.sh]"
	program, i := programOf(command)
	if !isPython(program) && !slices.Contains(interpreters, program) {
		return 0, fmt.Errorf("snapshot: script of a command of %s, %s", short(program), wanted)
	}
	for ; i < len(command); i++ {
		switch arg := command[i]; {
		case arg == "-c" || arg == "-m" || arg == "--module" || arg == "-":
			return 0, fmt.Errorf("snapshot: script of a command with %s, %s", arg, wanted)
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"):
			return i, nil
		case takesValue(program, arg):
			i++
		}
	}
	return 0, fmt.Errorf("snapshot: script of a command without one, %s", wanted)
}

// programOf returns the name of the program of a command, which may stand behind env, and the index of its arguments.
func programOf(command []string) (program string, i int) {
	program, i = filepath.Base(command[0]), 1
	for ; i < len(command) && program == "env"; i++ {
		switch arg := command[i]; {
		case takesValue(program, arg):
			i++
		case !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "="):
			program = filepath.Base(arg)
		}
	}
	return program, i
}

// ScriptPath returns the path of the script of a task, which has one.
func (t *Task) ScriptPath() string {
	path := t.Command[t.Script.At]
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.Dir, path)
	}
	return path
}

// Program returns the path of what a task runs: its script, else its program, which may be one that is looked for in
// PATH; "" = words for a shell.
func (t *Task) Program() string {
	path := t.Command[0]
	if at, err := ScriptOf(t.Command); err == nil {
		return t.Within(t.Command[at])
	}
	if len(t.Command) > 1 && t.Command[1] == "-c" {
		return ""
	}
	if strings.Contains(path, "/") {
		path = t.Within(path)
	}
	return path
}

// ScriptIsPython reports whether Python runs the script of a task.
func (t *Task) ScriptIsPython() bool {
	return strings.HasSuffix(t.Command[t.Script.At], ".py") || slices.ContainsFunc(t.Command[:t.Script.At],
		func(arg string) bool { return isPython(filepath.Base(arg)) })
}
