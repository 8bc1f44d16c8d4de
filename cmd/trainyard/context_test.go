package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/cli/term"
)

// Ensure that a context that leads nowhere, or a file of contexts that is not to be used, is one clear error with its
// exit code, and that nothing hangs.
func TestContextMistakes(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("TRAINYARD_STATE", "")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := filepath.Join(config, "trainyard", "contexts.yaml")
	const good = `contexts:
  - {name: missing, command: [no-such-program-anywhere]}
  - {name: ends, command: [sh, -c, "echo Permission denied >&2; exit 255"]}
  - {name: silent, command: ["true"]}
  - {name: noise, command: [sh, -c, "echo Welcome to lab; read x; echo more"]}
  - {name: away, server: "https://127.0.0.1:1"}
  - {name: nofile, server: "https://127.0.0.1:1", ca: /nowhere/ca.pem}
  - {name: tokens, server: "https://127.0.0.1:1", token_file: /etc/passwd}
  - {name: folder, state: /nowhere}
`
	for _, c := range []struct {
		name, file string
		mode       os.FileMode
		args       string
		code       int
		want       string
	}{
		{"unknown", good, 0o600, "ps --context noise2", 2, `no such context: "noise2" (did you mean "noise"?)`},
		{"none at all", "", 0o600, "ps --context lab", 2, "there are none, add one by `trainyard context add`"},
		{"both flags", good, 0o600, "ps --context noise --state x", 2, "are both given, want one"},
		{"command missing", good, 0o600, "ps --context missing", 6, "context missing: no trainyard runs there: "},
		{"command missing, for jobs", good, 0o600, "submit --context missing -- true", 6,
			"context missing: no trainyard runs there: "},
		{"command ends at once", good, 0o600, "ps --context ends", 6, "the command ended: Permission denied"},
		{"command ends without a word", good, 0o600, "ps --context silent", 6,
			"context silent: no trainyard runs there"},
		{"noise before HTTP", good, 0o600, "ps --context noise", 6, "Welcome to lab"},
		{"server away", good, 0o600, "ps --context away", 6, "127.0.0.1:1: no trainyard runs there"},
		{"no such CA", good, 0o600, "ps --context nofile", 3, "/nowhere/ca.pem"},
		{"a token file of two lines", good, 0o600, "ps --context tokens", 9,
			"token_file: /etc/passwd holds more than a token"},
		{"a verb for a machine", good, 0o600, "--context noise serve", 2, "serve: it is for the machine"},
		{"a verb for a machine, below another", good, 0o600, "--context noise token list", 2, "token list: it is for"},
		{"no such folder", good, 0o600, "ps --context folder", 6, "/nowhere: no trainyard runs there"},
		{"writable by others", good, 0o622, "ps --context noise", 8, "others may write it"},
		{"not YAML", "contexts: [", 0o600, "ps --context noise", 9, "contexts.yaml: malformed: "},
		{"unknown key", "contexts:\n  - {name: a, stat: /x}\n", 0o600, "ps --context a", 9, "unknown field"},
		{"two kinds", "contexts:\n  - {name: a, state: /x, command: [b]}\n", 0o600, "ps --context a", 9,
			"2 of state, server and command, want one"},
		{"twice", "contexts:\n  - {name: a, state: /x}\n  - {name: a, state: /y}\n", 0o600, "ps --context a", 9,
			"there twice"},
		{"current unknown", "current: b\ncontexts:\n  - {name: a, state: /x}\n", 0o600, "ps", 9,
			`current "b" is none of the contexts`},
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.file), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: code %d, want %d; stderr %q, want one line with %q; stdout %q", c.name, code, c.code, stderr,
				c.want, stdout)
		}
	}
}

// Ensure that a file of contexts is not used where others may put another in its place.
func TestContextFolderOfOthers(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("TRAINYARD_STATE", "")
	folder := filepath.Join(config, "trainyard")
	if code, _, stderr := command(t, "context", "add", "lab", "--command", "false"); code != 0 {
		t.Fatal(code, stderr)
	}
	for mode, want := range map[os.FileMode]int{0o777: 8, 0o720: 8, 0o755: 6} {
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command(t, "--context", "lab", "ps")
		if code != want || stdout != "" || (want == 8) != strings.Contains(stderr, folder+": others may write it") {
			t.Errorf("folder of mode %o: code %d, want %d; %q, %q", mode, code, want, stdout, stderr)
		}
	}
}

// Ensure that a server that shows a certificate of another than the context names is one clear error, and is asked
// nothing.
func TestContextOtherCertificate(t *testing.T) {
	asked := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("TRAINYARD_STATE", "")
	file := filepath.Join(config, "trainyard", "contexts.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "contexts:\n  - {name: other, server: \"" + server.URL + "\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"ps", "cancel 3", "submit -- true"} {
		code, stdout, stderr := command(t, append([]string{"--context", "other"}, strings.Fields(verb)...)...)
		if code != term.ExitUnreachable || stdout != "" || !strings.Contains(stderr, server.Listener.Addr().String()) ||
			!strings.Contains(stderr, "--ca") || strings.Contains(stderr, "/v1/") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: code %d, %q, %q, want 6 and one line that says what to do", verb, code, stdout, stderr)
		}
	}
	if asked {
		t.Error("it was asked something")
	}
}

// Ensure that a command that gives no connection, and does not end, is one clear error in the end.
func TestContextCommandHangs(t *testing.T) {
	t.Parallel()
	b := newBystander(t, t.TempDir())
	b.types(term.ExitOK, "context", "add", "hangs", "--command", "sleep 600")
	got := b.types(term.ExitUnreachable, "--context", "hangs", "ps")
	if !strings.Contains(got, "context hangs: ") || !strings.Contains(got, "does not answer") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("%q, want one line that says that it does not answer", got)
	}
}

// Ensure that contexts are added, used, listed and removed, that the file is its owner's alone, and that what changes
// something names a context that no flag named.
func TestContextVerbs(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("TRAINYARD_STATE", "")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := filepath.Join(config, "trainyard", "contexts.yaml")
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // part of it; "": none at all
	}{
		{[]string{"context", "list"}, 0, "", "no contexts; add one by"},
		{[]string{"context", "add", "lab", "--command", `sh -c "echo 'no way' >&2"`}, 0, "", ""},
		{[]string{"context", "add", "lab", "--state", "x"}, 4, "", "is there already; --replace"},
		{[]string{"context", "add", "desk", "--state", "/tmp/desk", "--server", "https://a:1"}, 2, "",
			"2 of state, server and command"},
		{[]string{"context", "add", "team", "--server", "http://a:1"}, 2, "", "want https://HOST:PORT"},
		{[]string{"context", "add", "-x"}, 2, "", "unknown"},
		{[]string{"context", "add", "q", "--command", "'a"}, 2, "", "a quote is not closed"},
		{[]string{"context", "use", "lap"}, 2, "", `did you mean "lab"?`},
		{[]string{"context", "use", "lab"}, 0, "", ""},
		{[]string{"context", "list"}, 0, "*   lab    command   sh -c echo 'no way' >&2", ""},
		{[]string{"context", "list", "--json"}, 0, `"current": "lab"`, ""},
		{[]string{"ps"}, 6, "", "context lab: no trainyard runs there: "},
		{[]string{"cancel", "3"}, 6, "", "trainyard: context lab (sh -c "},
		{[]string{"context", "use", "-"}, 0, "", ""},
		{[]string{"ps"}, 6, "", "trainyard: no trainyard runs there"},
		{[]string{"context", "remove", "lab"}, 0, "", ""},
		{[]string{"context", "remove", "lab"}, 2, "", "no such context"},
	} {
		code, stdout, stderr := command(t, c.args...)
		bad := func(got, want string) bool { return want == "" && got != "" || !strings.Contains(got, want) }
		if c.args[0] == "ps" {
			c.stderr = strings.TrimPrefix(c.stderr, "trainyard: ")
		}
		if code != c.code || bad(stdout, c.stdout) || bad(stderr, c.stderr) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %d, %q, %q", c.args, code, stdout, stderr, c.code,
				c.stdout, c.stderr)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want a file of mode 0600", info, err)
	}
	if left, err := filepath.Glob(filepath.Join(config, "trainyard", ".*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left over, %v", left, err)
	}
	t.Setenv("TRAINYARD_STATE", "/tmp/a")
	t.Setenv("TRAINYARD_CONTEXT", "lab")
	if code, _, stderr := command(t, "ps"); code != 2 || !strings.Contains(stderr, "are both set, want one") {
		t.Errorf("both variables: code %d, %q", code, stderr)
	}
}

// command runs a command line in this process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}
