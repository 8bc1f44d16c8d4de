//go:build linux

package serve

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// unitBy is the unit that serve --install --print writes, with more arguments.
func unitBy(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newServe()
	cmd.SetArgs(append([]string{"--install", "--print", "--slots", "2"}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// Ensure that no path adds a line to the unit, that systemd reads each as it is, and that none depends on the folder
// that serve --install was called in.
func TestUnitHostile(t *testing.T) {
	t.Setenv("PATH", `/usr/bin:/a "b" %h$x\y`)
	folder := filepath.Join(t.TempDir(), `%i $HOME "q" \z`)
	unit, err := unitBy(t, "--state", folder)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(folder)
	for _, want := range []string{`"--state=` + escaped + `"`, `Environment="PATH=/usr/bin:/a \"b\" %%h$x\\y"` + "\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("%s\nwant %s", unit, want)
		}
	}
	const broken = "/x\nExecStartPre=/bin/false"
	for _, args := range [][]string{{"--state", broken}, {"--state", t.TempDir(), "--notify", broken}} {
		if unit, err = unitBy(t, args...); term.ExitCode(err) != term.ExitUsage {
			t.Errorf("%q: %v\n%s", args, err, unit)
		}
	}
	t.Setenv("PATH", broken)
	if unit, err = unitBy(t, "--state", t.TempDir()); term.ExitCode(err) != term.ExitUsage {
		t.Errorf("PATH: %v\n%s", err, unit)
	}
	t.Setenv("PATH", "/usr/bin:/bin")
	t.Chdir("/bin")
	for given, want := range map[string]string{"./true": "--notify=/bin/true", "true": "--notify=true"} {
		if unit, err = unitBy(t, "--state", t.TempDir(), "--notify", given); err != nil ||
			!strings.Contains(unit, `"`+want+`"`) {
			t.Errorf("%s: %v\n%s", given, err, unit)
		}
	}
}
