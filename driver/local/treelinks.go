package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainyard/trainyard/attempt/task"
)

// unlinked returns the command of a task that runs in dir, in a copy of its tree, with its program and script by their
// places in the copy where links lead from their paths into the original.
func unlinked(t *task.Task, command []string, dir, copied string) []string {
	command = slices.Clone(command)
	if strings.Contains(command[0], "/") { // else it is looked for in PATH
		command[0] = inCopy(command[0], dir, t.Tree.Root, copied)
	}
	if at, err := task.ScriptOf(command); err == nil && t.Script.At == 0 {
		command[at] = inCopy(command[at], dir, t.Tree.Root, copied)
	}
	return command
}

// inCopy returns the place in a copy of what is in the original, if links lead there from a path; else the path.
func inCopy(path, dir, original, copied string) string {
	at := path
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	real, err := filepath.EvalSymlinks(at)
	if whole, bad := filepath.EvalSymlinks(copied); err != nil || bad != nil || within(whole, real) != "" {
		return path
	}
	inside := within(original, real)
	if inside == "" {
		return path
	}
	moved := filepath.Join(copied, inside)
	if _, err := os.Lstat(moved); err != nil { // it was not there then
		return path
	}
	return moved
}

// within returns a path below a folder, relative to that; "" = it is not.
func within(folder, path string) string {
	if inside, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(inside) {
		return inside
	}
	return ""
}
