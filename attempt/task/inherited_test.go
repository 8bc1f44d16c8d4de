package task

import (
	"fmt"
	"strings"
	"testing"
)

// Ensure that what is about a shell, a session or one process of several is left out, and nothing that merely looks so.
func TestInherits(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PATH", "HOME", "PYTHONPATH", "RANKS", "PWDX", "_X", "DISPLAYED", "XDG_CACHE_HOME",
		"SSHX", "SLURMX", "HF_TOKEN", "OMP_NUM_THREADS"} {
		if !Inherits(name, "x") {
			t.Errorf("%s is left out", name)
		}
	}
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "TRAINYARD_STATE", "LD_PRELOAD", "PET_NNODES", "RANK",
		"LOCAL_RANK", "WORLD_SIZE", "SLURM_JOB_ID", "SSH_AUTH_SOCK", "TMUX", "TMUX_PANE", "DISPLAY", "XDG_SESSION_ID",
		"DBUS_SESSION_BUS_ADDRESS", "PWD", "OLDPWD", "SHLVL", "_", "BASH_FUNC_x%%", "A B", ""} {
		if Inherits(name, "x") {
			t.Errorf("%s is inherited", name)
		}
	}
	if Inherits("A", "caf\xe9") || Inherits("A", strings.Repeat("x", MaxText)) {
		t.Error("a value that is no text, or too long, is inherited")
	}
}

// Ensure that too much is refused, that the reason says no value, and that a task says what it inherits by digest.
func TestCheckInherited(t *testing.T) {
	t.Parallel()
	many, large := make(map[string]string), make(map[string]string)
	for i := range MaxEnv + 1 {
		many[fmt.Sprint("V", i)] = ""
	}
	for i := range 20 {
		large[fmt.Sprint("V", i)] = strings.Repeat("canary", 20_000)
	}
	for want, env := range map[string]map[string]string{
		"environment of 1001 variables, want at most 1000":     many,
		"environment of 2400090 bytes, want at most 1048576":   large,
		"env A is not text in UTF-8, want text":                {"A": "canary\xe9"},
		`env "A-B", want a name of letters, digits and _`:      {"A-B": "canary"},
		"env MASTER_PORT is reserved, want another name (Trai": {"MASTER_PORT": "canary"},
	} {
		err := CheckInherited(env)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	k := sample()
	for digest, good := range map[string]bool{"": true, strings.Repeat("0a", 32): true, "0a": false,
		strings.Repeat("0A", 32): false, strings.Repeat("/.", 32): false} {
		k.Inherit = digest
		if err := k.Validate(); (err == nil) != good {
			t.Errorf("inherit %q: %v", digest, err)
		}
	}
}
