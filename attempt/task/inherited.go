package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// left are the variables of a shell that jobs do not inherit: they are about that shell, its terminal and its session,
// or say to a training which of several processes it is. Those that end in _ stand for all that start so.
var left = []string{"PET_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_", "SSH_",
	"TMUX", "TMUX_", "DISPLAY", "XDG_SESSION_",
	"DBUS_", "PWD", "OLDPWD", "SHLVL", "_", "BASH_FUNC_"}

// Inherits reports whether jobs inherit a variable of the shell that they are submitted from. Who names it asks for it
// all the same, see CheckInherited.
func Inherits(name, value string) bool {
	stays := slices.ContainsFunc(left, func(l string) bool {
		return name == l || len(l) > 1 && strings.HasSuffix(l, "_") && strings.HasPrefix(name, l)
	})
	return !stays && CheckEnvName(name) == nil && CheckEnvValue(name, value) == nil
}

// CheckInherited returns what keeps variables from being those that a job inherits, or nil. It says no value.
func CheckInherited(env map[string]string) error {
	if len(env) > MaxEnv {
		return fmt.Errorf("environment of %d variables, want at most %d", len(env), MaxEnv)
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if err := CheckEnvName(name); err != nil {
			return err
		}
		if err := CheckEnvValue(name, env[name]); err != nil {
			return fmt.Errorf("env %s %w", name, err)
		}
		size += len(name) + len(env[name]) + 2
	}
	if size > MaxSize {
		return fmt.Errorf("environment of %d bytes, want at most %d", size, MaxSize)
	}
	return nil
}

// checkInherit returns what is wrong with Inherit, or nil.
func (t *Task) checkInherit() error {
	if t.Inherit != "" && (len(t.Inherit) != digestLen || strings.Trim(t.Inherit, "0123456789abcdef") != "") {
		return fmt.Errorf("inherit %q, want a SHA-256 in hexadecimal", short(strings.ToValidUTF8(t.Inherit, "?")))
	}
	return nil
}

// digestLen is the length of a SHA-256 in hexadecimal.
const digestLen = 64
