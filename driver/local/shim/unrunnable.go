package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Missing says why a program cannot be run in a folder with an environment, as far as that can be reported without a
// start; "" if nothing speaks against it. What counts is what is there when it starts.
func Missing(program, dir string, env []string) string {
	path, err := lookPath(program, dir, env)
	if err == nil {
		info, bad := os.Stat(path)
		switch {
		case bad == nil && !info.IsDir() && info.Mode()&0o111 != 0:
			return ""
		case bad == nil:
			err = fs.ErrPermission
		default:
			err = bad
		}
	}
	return unrunnable(&Order{Command: []string{program}, Dir: dir, Env: env}, path, err)
}

// unrunnable says why the command of an order cannot be run, found at path: where, what, and what is wanted.
func unrunnable(o *Order, path string, err error) string {
	if info, bad := os.Stat(o.Dir); bad != nil || !info.IsDir() {
		what := " is not a directory"
		if bad != nil {
			what = ": " + reason(bad)
		}
		return fmt.Sprintf("folder to run in: %s%s, want one that is there", o.Dir, what)
	}
	program := o.Command[0]
	info, missing := os.Stat(path)
	switch {
	case errors.Is(err, exec.ErrNotFound) && o.Inherit != "": // no value of a variable is reported
		return fmt.Sprintf("command %s: not found in PATH (that of its submitter), want its path, or its folder there",
			program)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Sprintf("command %s: not found in PATH (%s), want its path, or its folder there", program,
			short(pathOf(o.Env)))
	case missing != nil:
		return fmt.Sprintf("command %s: %s: %s, want a program", program, path, reason(missing))
	case info.IsDir():
		return fmt.Sprintf("command %s: %s is a directory, want a program", program, path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("command %s: %s is not executable (permission denied), want chmod +x, or its interpreter "+
			"before it", program, path)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("command %s: what the first line of %s names is not found, want the interpreter of a "+
			"script, or a program's loader", program, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Sprintf("command %s: %s is no program of this machine and starts with no #!, want its interpreter "+
			"before it", program, path)
	}
	return fmt.Sprintf("command %s: %s", program, reason(err))
}

// reason is what the system says is wrong, without what it was about.
func reason(err error) string {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}

// short cuts what would make a sentence unreadable.
func short(text string) string {
	const most = 100
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// pathOf is the PATH of an environment.
func pathOf(env []string) (path string) {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}
