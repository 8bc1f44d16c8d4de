package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stage is a manager, its folder, and who asks it.
type stage struct {
	dir, bin, state string
	daemon          *exec.Cmd
	start           time.Time
	noted           int // lines of submit that were shown
}

// mostNoted is how many of those lines are shown.
const mostNoted = 3

// patience bounds every wait.
const patience = 2 * time.Minute

// serve starts the manager and waits until it answers. Jobs are stopped for little, so that there is something to see.
func (s *stage) serve() error {
	said, err := os.OpenFile(filepath.Join(s.dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	s.daemon = exec.Command(filepath.Join(s.bin, "trainyard"), "serve", "--state", s.state, "--slots", "4",
		"--set", "*.min_run=0", "--set", "*.preempt_limit=0", "--set", "*.thresholds=1")
	s.daemon.Stdout, s.daemon.Stderr = said, said
	if err := s.daemon.Start(); err != nil {
		return err
	}
	return s.until("the manager answers", func() (bool, error) {
		_, err := s.ask("ps", "--json")
		return err == nil, nil
	})
}

// kill ends the manager as a crash would. Its jobs go on.
func (s *stage) kill() {
	if s.daemon != nil && s.daemon.Process != nil {
		_ = s.daemon.Process.Signal(syscall.SIGKILL)
		_, _ = s.daemon.Process.Wait()
	}
}

// end cancels what still runs and ends the manager: nothing is left where a scene has failed.
func (s *stage) end() {
	if s.daemon == nil {
		return
	}
	list, _ := s.jobs()
	for i := range list {
		if list[i].State != "done" {
			_, _ = s.ask("cancel", strconv.Itoa(i))
			_, _ = s.ask("wait", strconv.Itoa(i), "--timeout", "20s")
		}
	}
	s.kill()
}

// ask runs trainyard with the folder of the manager and returns what it prints.
func (s *stage) ask(args ...string) (string, error) {
	all := append([]string{args[0], "--state", s.state}, args[1:]...)
	cmd := exec.Command(filepath.Join(s.bin, "trainyard"), all...)
	cmd.Dir = s.dir
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("trainyard %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	if args[0] == "submit" {
		for _, line := range strings.Split(said.String(), "\n") {
			if s.noted < mostNoted && strings.Contains(line, "will not be stopped") {
				s.noted++
				fmt.Println("   submit:", line)
			}
		}
	}
	return out.String(), nil
}

// submit submits a job file and returns the number of its first job.
func (s *stage) submit(jobs string) (int, error) {
	path := filepath.Join(s.dir, "jobs.yaml")
	if err := os.WriteFile(path, []byte(jobs), 0o600); err != nil {
		return 0, err
	}
	out, err := s.ask("submit", path)
	if err != nil {
		return 0, err
	}
	first := 0
	_, err = fmt.Sscan(out, &first)
	return first, err
}

// job returns how a job stands.
func (s *stage) job(id int) (job, error) {
	list, err := s.jobs()
	if err != nil || id >= len(list) {
		return job{}, errors.Join(err, fmt.Errorf("job %d of %d", id, len(list)))
	}
	return list[id], nil
}

// jobs returns how all jobs stand, by number.
func (s *stage) jobs() ([]job, error) {
	out, err := s.ask("ps", "--all", "--json")
	if err != nil {
		return nil, err
	}
	var doc struct {
		Jobs []job `json:"jobs"`
	}
	err = json.Unmarshal([]byte(out), &doc)
	return doc.Jobs, err
}

// done waits until a job is done and returns how it ended.
func (s *stage) done(id int) (j job, err error) {
	err = s.until(fmt.Sprintf("job %d is done", id), func() (bool, error) {
		j, err = s.job(id)
		return err == nil && j.State == "done", err
	})
	return j, err
}

// until asks again and again whether something holds.
func (s *stage) until(what string, holds func() (bool, error)) error {
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		ok, err := holds()
		switch {
		case ok:
			return nil
		case time.Since(begin) > patience:
			said, _ := os.ReadFile(filepath.Join(s.dir, "serve.log"))
			return fmt.Errorf("waited for it that %s: %w; the manager said: %s", what,
				errors.Join(err, errors.New("not in time")), last(said, 2000))
		}
	}
}

// output returns what an attempt of a job wrote so far.
func (s *stage) output(id, attempt int) string {
	b, _ := os.ReadFile(filepath.Join(s.state, "jobs", fmt.Sprint(id), fmt.Sprint(attempt), "output.log"))
	return string(b)
}

// last returns the end of b.
func last(b []byte, most int) string { return string(b[max(len(b)-most, 0):]) }

// close prints the table, leaves the log, decides it again, and ends the manager.
func (s *stage) close(t *tally, keep string) error {
	if keep == "" {
		keep = filepath.Join(s.dir, "log.jsonl")
	}
	events, err := s.ask("events")
	if err != nil {
		return err
	}
	if failed := errors.Join(os.WriteFile(keep, []byte(events), 0o600), t.read(events)); failed != nil {
		return failed
	}
	if t.jobs, err = s.jobs(); err != nil {
		return err
	}
	found, err := s.ask("doctor", "--json")
	if err != nil {
		return err
	}
	t.quarantined = strings.Count(found, "quarantined")
	again := exec.Command(filepath.Join(s.bin, "trainyard"), "replay", keep)
	again.Stdout, again.Stderr = io.Discard, os.Stderr
	t.replays = again.Run() == nil
	_ = s.daemon.Process.Signal(syscall.SIGINT)
	_, _ = s.daemon.Process.Wait()
	s.daemon = nil
	if err := t.print(os.Stdout, s.start); err != nil {
		return err
	}
	fmt.Printf("%-40s %s\n", "the log", keep)
	return nil
}
