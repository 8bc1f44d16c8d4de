package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// diskScene plays fillDisk in a name space of its own, where there is one.
func diskScene(s *stage, t *tally) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	folder := filepath.Join(s.dir, "disk")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "none", folder).Run(); err != nil {
		fmt.Println("   left out: no user name space here to mount a small disk in")
		return nil
	}
	cmd := exec.Command("unshare", "-Urm", exe, "-bin", s.bin, "-disk", folder)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	t.disk = err == nil
	return err
}

// fillDisk serves a folder on a disk of 128 MiB, which it fills and frees.
func fillDisk(bin, folder string) (err error) {
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128m", "none", folder).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	s := &stage{dir: folder, bin: bin, state: filepath.Join(folder, "state"), start: time.Now()}
	defer s.end()
	if err := s.serve(); err != nil {
		return err
	}
	goes := filepath.Join(folder, "go")
	first, err := s.submit(`jobs: [{name: runs, count: 2, command: [sh, -c, 'until [ -e ` + goes +
		` ]; do sleep 0.1; done']}]`)
	if err != nil {
		return err
	}
	defer func() { _ = os.WriteFile(goes, nil, 0o600) }() // whatever becomes of us, they end
	if err := s.until("both run", func() (bool, error) {
		a, err := s.job(first)
		b, other := s.job(first + 1)
		return a.State == "running" && b.State == "running", errors.Join(err, other)
	}); err != nil {
		return err
	}
	fill := filepath.Join(folder, "fill")
	if err := fillUp(fill); err != nil {
		return err
	}
	if err := s.until("jobs are refused", func() (bool, error) {
		_, err := s.ask("submit", "--patience", "0", "--", "true")
		return err != nil && strings.Contains(err.Error(), "exit status 5"), err
	}); err != nil {
		return err
	}
	fmt.Println("   full: jobs are refused, those that run go on")
	if _, err := s.ask("cancel", fmt.Sprint(first)); err != nil {
		return err
	}
	if err := os.Remove(fill); err != nil {
		return err
	}
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		return err
	}
	for i, want := range []string{"cancelled", "finished"} {
		j, err := s.done(first + i)
		if err != nil {
			return err
		}
		if j.Outcome != want {
			return fmt.Errorf("job %d %s, want %s", first+i, j.Outcome, want)
		}
	}
	next := 0
	if err := s.until("jobs are taken again", func() (bool, error) {
		next, err = s.submit(`jobs: [{name: next, command: ['true']}]`)
		return err == nil, err
	}); err != nil {
		return err
	}
	j, err := s.done(next)
	if err == nil && j.Outcome != "finished" {
		err = fmt.Errorf("the next job %s, want finished", j.Outcome)
	}
	fmt.Println("   freed: jobs are taken again, without a restart")
	return err
}

// fillUp writes until there is no room.
func fillUp(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		switch _, err := f.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2]
		case err != nil:
			return err
		}
	}
	return nil
}
