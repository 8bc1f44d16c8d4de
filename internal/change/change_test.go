package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// page is what the changes are made by, root the tree.
const (
	root = "../.."
	page = root + "/docs/inside/changes.md"
)

// most is how many files each change may need. It falls, or stays.
var most = map[string]int{"A policy": 4, "A key that names a file": 3, "An event that jobs cause": 8}

// Ensure that each change of the page can be made as it says, passes its tests, and needs few files.
func TestChanges(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	if len(all) != len(most) {
		t.Errorf("%d changes, want %d", len(all), len(most))
	}
	for _, x := range all {
		t.Run(x.title, func(t *testing.T) { x.try(t) })
	}
}

// try makes the change in a copy of the tree.
func (x *example) try(t *testing.T) {
	written, generated := x.files()
	t.Logf("files: %s; generated: %s", strings.Join(written, ", "), strings.Join(generated, ", "))
	if want := most[x.title]; len(written) > want || x.most != want || len(x.run) == 0 {
		t.Errorf("%d files, %d as the page says, %d commands; want at most %d, the same, and some",
			len(written), x.most, len(x.run), want)
	}
	dir := copied(t)
	for i := range x.edits {
		if err := x.edits[i].apply(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range x.run {
		shell(t, dir, command)
	}
}

// copied returns a copy of the files that are tracked, or new and not ignored.
func copied(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(dir, name)
		info, err := os.Lstat(from)
		if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() { // removed and not committed, or a link
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, info.Mode().Perm()|0o200); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell runs a command in the copy. What is compiled without the name of its folder is found in the cache, from this
// tree and from earlier copies.
func shell(t *testing.T, dir, command string) {
	t.Helper()
	const flags = "-trimpath -buildvcs=false"
	c := exec.CommandContext(t.Context(), "bash", "-c", command)
	c.Dir, c.Env = dir, append(os.Environ(), "GOFLAGS="+flags, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	for _, nothing := range []string{"no tests to run", "no test files", "no packages"} {
		if strings.Contains(string(out), nothing) {
			t.Errorf("%s: %s", command, out)
		}
	}
	used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	t.Logf("%s: %.1f s of CPU", command, used.Seconds())
}

// Ensure that a place is found by what stands there, and that one that is not there, or is there twice, is an error.
func TestPlaces(t *testing.T) {
	const text = "a {\n\tx\n}\nb {\n\tx\n}\n"
	for _, c := range []struct {
		e    edit
		want string
	}{
		{edit{after: "a {"}, "a {\nNEW\n\tx\n}\nb {\n\tx\n}\n"},
		{edit{after: "b {", below: "}"}, text + "NEW\n"},
		{edit{after: "b {", instead: true}, "a {\n\tx\n}\nNEW\n\tx\n}\n"},
		{edit{after: "x"}, `file: lines 2 and 5 contain "x", want one`},
		{edit{after: "y"}, `file: no line contains "y"`},
		{edit{after: "b {", below: "y"}, `file: no line "y" below the one that contains "b {"`},
		{edit{}, "file is there already"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		c.e.path, c.e.text = "file", "NEW\n"
		err := c.e.apply(dir)
		b, _ := os.ReadFile(path)
		if got := string(b); err == nil && got != c.want || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v, %q, want %q", c.e, err, got, c.want)
		}
	}
}

// Ensure that a page of which a part would be passed over is refused.
func TestPagesThatAreNotUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"## X\n\n```go\na\n```\n":                      "a block of text that no line says what to do with",
		"## X\n\nIn `f`, after line 3, insert:\n\n":    "is not understood",
		"## X\n\nNew file `f`:\n\nwithout a block\n":   "want an empty line and a block of text below it",
		"## X\n\nNew file `f`:\n\n```go\nnever ends\n": "want an empty line and a block of text below it",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
