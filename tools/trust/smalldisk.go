package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
	if failed := os.Mkdir(folder, 0o700); failed != nil {
		return failed
	}
	if exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "none", folder).Run() != nil {
		fmt.Println("   left out: no user name space here to mount a small disk in")
		return nil
	}
	cmd := exec.Command("unshare", "-Urm", exe, "-bin", s.bin, "-disk", folder)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	t.disk = err == nil
	return err
}

// fillDisk serves a folder on a disk of 256 MiB, which it fills and frees. That disk is the root of all: in a name
// space of a user who is not root the folders above any other belong to someone who has no name there.
func fillDisk(bin, root string) error {
	if err := smallRoot(root); err != nil {
		return err
	}
	folder := "/small"
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
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
	if err := s.until("both run", func() (bool, error) {
		a, err := s.job(first)
		b, other := s.job(first + 1)
		return a.State == "running" && b.State == "running", errors.Join(err, other)
	}); err != nil {
		return err
	}
	if err := s.whileFull(filepath.Join(folder, "fill"), first); err != nil {
		return err
	}
	return s.onceFreed(goes, first)
}

// smallRoot mounts a disk, has what is in / be there too, and makes it the root.
func smallRoot(root string) error {
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m,mode=755", "none", root)
	if out, err := mount.CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	list, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := among(e, filepath.Join(root, e.Name())); err != nil {
			return err
		}
	}
	return errors.Join(syscall.Chroot(root), os.Chdir("/"))
}

// among has an entry of / be at a path as well, if it is a folder or a link.
func among(e os.DirEntry, path string) error {
	from := "/" + e.Name()
	switch {
	case e.Type()&os.ModeSymlink != 0:
		to, err := os.Readlink(from)
		return errors.Join(err, os.Symlink(to, path))
	case !e.IsDir():
		return nil
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "--rbind", from, path).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	return nil
}

// whileFull fills the disk, sees jobs refused, cancels one that runs, and frees the disk.
func (s *stage) whileFull(fill string, first int) error {
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
	_, err := s.ask("cancel", strconv.Itoa(first))
	return errors.Join(err, os.Remove(fill))
}

// onceFreed sees how the jobs that ran end, and that others are taken.
func (s *stage) onceFreed(goes string, first int) error {
	if err := os.WriteFile(goes, nil, 0o600); err != nil {
		return err
	}
	for i, want := range []string{"cancelled", "finished"} {
		if err := s.ends(first+i, want); err != nil {
			return err
		}
	}
	next := 0
	if err := s.until("jobs are taken again", func() (taken bool, err error) {
		next, err = s.submit(`jobs: [{name: next, command: ['true']}]`)
		return err == nil, err
	}); err != nil {
		return err
	}
	fmt.Println("   freed: jobs are taken again, without a restart")
	return s.ends(next, "finished")
}

// ends waits for the end of a job, which must be as wanted.
func (s *stage) ends(id int, want string) error {
	j, err := s.done(id)
	if err == nil && j.Outcome != want {
		err = fmt.Errorf("job %d (%s) %s, want %s", id, j.Name, j.Outcome, want)
	}
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
