//go:build linux

package procs

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// Ensure that the user of a process is found in its status, whatever it calls itself.
func TestIsOf(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t0\t0\t0\t0\n":  true,
		"Name:\tx\nUid:\t70\t7\t7\t7\nGid:\t7\t7\t7\t7\n": false,
		"Name:\tUid:\\t7\nUid:\t8\t8\t8\t8\n":             false,
		"Name:\tx\nUid:\n":                                false,
		"":                                                false,
		"Name:\tx\nUmask:\t0022\nTgid:\t7\nUid:\t7\t0\t0\t0\n": true,
	} {
		if got := isOf(7, status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

// Ensure that a process is found by its last argument, and only where it is of the same user: another user's would be
// waited for for ever, as it cannot be ended.
func TestWithLastArgument(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	users := []*syscall.Credential{nil}
	if os.Getuid() == 0 {
		users = append(users, &syscall.Credential{Uid: 65534, Gid: 65534})
	}
	for _, user := range users {
		cmd := exec.Command("/bin/sh", "-c", "read line; :", "shim", name)
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: user}
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(WithLastArgument("shim\x00"+name), func(m Member) bool {
			return m.PID == cmd.Process.Pid
		})
		if want := user == nil; found != want {
			t.Errorf("of user %v: found %v, want %v", user, found, want)
		}
		_ = in.Close()
		_ = cmd.Wait()
	}
}
