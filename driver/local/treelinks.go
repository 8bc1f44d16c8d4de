package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/attempt/task"
	"github.com/trainyard/trainyard/driver/local/shim"
)

// unlinkTime is how long links of a user are followed: they may lead to a server that is away.
const unlinkTime = 10 * time.Second

// unlinked returns an order with the command that unlink returns, if that is not nil and returns in time; else as it
// is.
func (a *attempt) unlinked(o *shim.Order, unlink func() []string) *shim.Order {
	if unlink == nil {
		return o
	}
	found := make(chan []string, 1)
	go func() { found <- unlink() }() // nothing ends it
	select {
	case command := <-found:
		other := *o // who has the order reads it
		other.Command = command
		return &other
	case <-time.After(unlinkTime):
		a.d.o.Log.Warn("links are not followed into the copy of a working tree: no answer", "job", a.job)
	case <-a.stopped:
	case <-a.d.quit:
	}
	return o
}

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
