package local

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trainyard/trainyard/attempt/task"
)

// Ensure that a program or script that links name runs in the copy of its tree, wherever in or out of the tree the link
// lies, and that what is not in the copy, or is named in it, stays as it is.
func TestUnlinked(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, copied := filepath.Join(root, "tree"), filepath.Join(root, "copy")
	outside := filepath.Join(root, "outside")
	for _, dir := range []string{tree, copied} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, failed := range []error{os.WriteFile(filepath.Join(dir, "run.sh"), nil, 0o600),
			os.Symlink("run.sh", filepath.Join(dir, "near")),
			os.Symlink(filepath.Join(tree, "run.sh"), filepath.Join(dir, "far"))} {
			if failed != nil {
				t.Fatal(failed)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(tree, "later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(tree, outside); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(copied, "run.sh")
	for _, c := range []struct{ command, want []string }{
		{[]string{outside + "/run.sh", "run.sh"}, []string{there, "run.sh"}},
		{[]string{"sh", outside + "/near"}, []string{"sh", there}},
		{[]string{"sh", "far"}, []string{"sh", there}},
		{[]string{"./far"}, []string{there}},
		{[]string{"./near"}, []string{"./near"}},
		{[]string{"sh", copied + "/near"}, []string{"sh", copied + "/near"}},
		{[]string{"far"}, []string{"far"}},
		{[]string{outside + "/later"}, []string{outside + "/later"}},
		{[]string{"/bin/sh", "nothing"}, []string{"/bin/sh", "nothing"}},
	} {
		job := task.Task{Command: c.command, Tree: task.Tree{Root: tree}}
		if got := unlinked(&job, c.command, copied, copied); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
}
