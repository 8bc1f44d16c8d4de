package task

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is a working tree of git, of which a job runs in a copy.
type Tree struct {
	Root    string `json:"root"`              // absolute path of the tree; of one that is not kept yet, of a folder in it
	Sum     string `json:"sha256,omitempty"`  // by which it is kept; "" = not yet
	Commit  string `json:"commit,omitempty"`  // on which it was; "" = there was none
	Changed bool   `json:"changed,omitempty"` // it was not as the commit
}

func (t *Task) checkTree() error {
	s := &t.Tree
	if s.Root == "" {
		if *s != (Tree{}) {
			return fmt.Errorf("tree %q of no folder", short(s.Sum))
		}
		return nil
	}
	if s.Sum != "" && (len(s.Sum) != digestLen || strings.Trim(s.Sum, "0123456789abcdef") != "") {
		return fmt.Errorf("tree %q, want a SHA-256 in hexadecimal", short(strings.ToValidUTF8(s.Sum, "?")))
	}
	if len(s.Commit) > digestLen || strings.Trim(s.Commit, "0123456789abcdef") != "" {
		return fmt.Errorf("commit %q, want hexadecimal", short(strings.ToValidUTF8(s.Commit, "?")))
	}
	return CheckDir(s.Root)
}

// String says for people what a job runs in.
func (s *Tree) String() string {
	text := "a working tree of git without commits"
	if s.Commit != "" {
		text = fmt.Sprintf("commit %.12s", s.Commit)
	}
	if s.Changed {
		text += ", with changes"
	}
	return text
}

// Moved returns the folder and the command of a task that runs in a copy of its tree at root: its folder in it, and the
// program and the script where they are paths in the original.
func (t *Task) Moved(command []string, root string) (dir string, moved []string, err error) {
	rel, err := filepath.Rel(t.Tree.Root, t.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return "", nil, fmt.Errorf("folder %s is not in %s, of which a copy was made", t.Dir, t.Tree.Root)
	}
	moved = slices.Clone(command)
	paths := []int{0}
	if at, none := ScriptOf(command); none == nil && t.Script.At == 0 {
		paths = append(paths, at)
	}
	for _, i := range paths {
		if inside, bad := filepath.Rel(t.Tree.Root, moved[i]); bad == nil && filepath.IsLocal(inside) {
			moved[i] = filepath.Join(root, inside)
		}
	}
	return filepath.Join(root, rel), moved, nil
}
