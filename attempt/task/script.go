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
	program, at, option := interpreted(command)
	switch {
	case at > 0:
		return at, nil
	case !isPython(program) && !slices.Contains(interpreters, program):
		return 0, fmt.Errorf("snapshot: script of a command of %s, %s", short(program), wanted)
	case option != "":
		return 0, fmt.Errorf("snapshot: script of a command with %s, %s", short(option), wanted)
	}
	return 0, fmt.Errorf("snapshot: script of a command without one, %s", wanted)
}

// interpreted returns the program of a command and the index of the script that it interprets, or the option by which
// it runs something else; 0 and "" = neither.
func interpreted(command []string) (program string, at int, option string) {
	program, i := programOf(command)
	if !isPython(program) && !slices.Contains(interpreters, program) {
		return program, 0, ""
	}
	for ; i < len(command); i++ {
		switch arg := command[i]; {
		case givesCode(program, arg) || arg == "-m" || arg == "--module" || arg == "-":
			return program, 0, arg
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "+"):
			return program, i, ""
		case takesValue(program, arg):
			i++
		}
	}
	return program, 0, ""
}

// givesCode reports whether an option of a shell or of Python says that what follows is code: -c, also among others, as
// in -lc.
func givesCode(program, option string) bool {
	valued := "oO" // options whose value may follow in the same argument
	switch {
	case isPython(program):
		valued = "WXm"
	case !strings.HasSuffix(program, "sh"):
		return option == "-c"
	}
	before, _, found := strings.Cut(option, "c")
	return found && strings.HasPrefix(option, "-") && !strings.HasPrefix(option, "--") &&
		!strings.ContainsAny(before, valued)
}

// stepPrefix returns how many words are before the command that srun of this program runs in a job of its own:
// [trainyard, slurm, srun, --ntasks, 2, --, python, train.py]; 0 = it runs none.
func stepPrefix(command []string) int {
	const own = 3
	if len(command) < own || command[1] != "slurm" || command[2] != "srun" {
		return 0
	}
	end := slices.Index(command, "--")
	if end < own || end == len(command)-1 {
		return 0
	}
	return end + 1
}

// programOf returns the name of the program of a command, which may stand behind env, and the index of its arguments.
func programOf(command []string) (program string, i int) {
	at := stepPrefix(command)
	program, i = filepath.Base(command[at]), at+1
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
	program, at, option := interpreted(t.Command)
	command := t.Command[stepPrefix(t.Command):]
	switch {
	case at > 0:
		return t.Within(t.Command[at])
	case option != "" && givesCode(program, option), len(command) > 1 && command[1] == "-c":
		return ""
	case strings.Contains(command[0], "/"):
		return t.Within(command[0])
	}
	return command[0]
}

// ScriptIsPython reports whether Python runs the script of a task.
func (t *Task) ScriptIsPython() bool {
	return strings.HasSuffix(t.Command[t.Script.At], ".py") || slices.ContainsFunc(t.Command[:t.Script.At],
		func(arg string) bool { return isPython(filepath.Base(arg)) })
}
