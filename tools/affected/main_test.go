package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// Ensure that a change alters its package, those that import it, and those whose tests do, and no other.
func TestAffected(t *testing.T) {
	tests := []struct {
		name   string
		change map[string]string
		want   string
	}{
		{"nothing", nil, ""},
		{"a leaf", map[string]string{"top/a.go": "package top\n\nimport _ \"m/mid\"\n\n// more\n"}, "top"},
		{"in the middle", map[string]string{"mid/new.go": "package mid\n"}, "mid top"},
		{"at the bottom", map[string]string{"low/a.go": "package low\n\n// more\n"}, "kit low mid tested top"},
		{"data of a test", map[string]string{"mid/testdata/x/a.txt": "other\n"}, "mid top"},
		{"a document", map[string]string{"docs/a.md": "text\n"}, ""},
		{"the module", map[string]string{"go.mod": "module m\n\ngo 1.26\n\n// more\n"}, "kit left low mid tested top"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{
				"go.mod":               "module m\n\ngo 1.26\n",
				"low/a.go":             "package low\n",
				"mid/a.go":             "package mid\n\nimport _ \"m/low\"\n",
				"mid/testdata/x/a.txt": "text\n",
				"top/a.go":             "package top\n\nimport _ \"m/mid\"\n",
				"kit/a.go":             "package kit\n\nimport _ \"m/low\"\n",
				"tested/a.go":          "package tested\n",
				"tested/a_test.go":     "package tested_test\n\nimport _ \"m/kit\"\n",
				"left/a.go":            "package left\n",
			})
			git(t, dir, "init", "-q", "-b", "main")
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-q", "-m", "one")
			git(t, dir, "checkout", "-q", "-b", "branch")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "two")
			write(t, dir, tt.change)
			var out bytes.Buffer
			if err := run(&out, dir, "", nil); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(strings.Join(strings.Fields(out.String()), " "), "./", "")
			if sorted(got) != tt.want {
				t.Errorf("affected: %q, want %q", sorted(got), tt.want)
			}
			// On a commit, too, and less what is left out.
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "three")
			out.Reset()
			if err := run(&out, dir, "HEAD~1", []string{"top", "left/..."}); err != nil {
				t.Fatal(err)
			}
			got = sorted(strings.ReplaceAll(strings.Join(strings.Fields(out.String()), " "), "./", ""))
			want := strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(" "+tt.want, " top", ""), " left", ""))
			if got != want {
				t.Errorf("since the commit before, without top and left: %q, want %q", got, want)
			}
		})
	}
}

func sorted(words string) string {
	return strings.Join(slices.Sorted(strings.FieldsSeq(words)), " ")
}

// Ensure that an unknown commit is an error that names it.
func TestUnknownBase(t *testing.T) {
	err := run(&bytes.Buffer{}, ".", "no-such-commit", nil)
	if err == nil || !strings.Contains(err.Error(), "no-such-commit") {
		t.Errorf("error %v, want one that names the commit", err)
	}
}
