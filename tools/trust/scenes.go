package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// plainScene has a script of twelve seconds on two slots, which saves nothing, next to jobs of two seconds that would
// go first.
func plainScene(s *stage, _ *tally) error {
	plain, err := s.submit(`jobs: [{name: plain, gpus: 2, command: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do ` +
		`sleep 1; done']}]`)
	if err != nil {
		return err
	}
	for range 2 {
		if _, failed := s.submit(`jobs: [{name: short, gpus: 3, command: [sleep, '2']}]`); failed != nil {
			return failed
		}
		time.Sleep(4 * time.Second)
	}
	j, err := s.done(plain)
	if err != nil {
		return err
	}
	fmt.Printf("   it ran %.1f s in %d attempt, %.0f s lost\n", j.RunSec, j.Attempt, j.LostSec)
	if j.Outcome != "finished" || j.Attempt != 1 {
		return fmt.Errorf("the plain script %s in %d attempts, want finished in one", j.Outcome, j.Attempt)
	}
	return nil
}

var stepLine = regexp.MustCompile(`(?m)^TRAINYARD (?:preempted )?step=(\d+)`)

// steps returns the first and the last step of an output; 0 where there is none.
func steps(output string) (first, final int) {
	all := stepLine.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return 0, 0
	}
	first, _ = strconv.Atoi(all[0][1])
	final, _ = strconv.Atoi(all[len(all)-1][1])
	return first, final
}

// torchScene has a training job preempted twice: PyTorch with two DataLoader workers where it is installed.
func torchScene(s *stage, t *tally) error {
	command, err := trains(s)
	if err != nil {
		return err
	}
	id, err := s.submit(`jobs: [{name: train, grace: 1m, checkpoint: {ready_file: .ckpt-done}, command: ` + command +
		`}]`)
	if err != nil {
		return err
	}
	if failed := s.preemptTwice(id); failed != nil {
		return failed
	}
	for attempt := 1; attempt <= 2; attempt++ {
		_, final := steps(s.output(id, attempt))
		first, _ := steps(s.output(id, attempt+1))
		lost := max(final-first+1, 0)
		fmt.Printf("   attempt %d ended at step %d, the next started at %d\n", attempt, final, first)
		if t.stepsLost = max(t.stepsLost, lost); lost > 1 || first > final+1 {
			return fmt.Errorf("attempt %d ended at step %d and the next started at %d, want at most one lost", attempt,
				final, first)
		}
	}
	_, err = s.ask("cancel", strconv.Itoa(id))
	return err
}

// preemptTwice has job id preempted once it trains, in its first and its second attempt, and waits for the third.
func (s *stage) preemptTwice(id int) error {
	for attempt := 1; ; attempt++ {
		if err := s.until("it trains", func() (bool, error) {
			first, final := steps(s.output(id, attempt))
			return final >= first+5 && final > 0, nil
		}); err != nil || attempt == 3 {
			return err
		}
		guest, err := s.submit(`jobs: [{name: guest, gpus: 4, preemptible: true, command: ['true']}]`)
		if err != nil {
			return err
		}
		if failed := s.ends(guest, "finished"); failed != nil {
			return failed
		}
	}
}

// trains is the command of a training job.
func trains(s *stage) (string, error) {
	if exec.Command("/usr/bin/python3", "-c", "import torch").Run() == nil {
		example, err := filepath.Abs("examples/pytorch/run.sh")
		if err != nil {
			return "", err
		}
		if _, err := os.Stat(example); err == nil {
			fmt.Println("   PyTorch, by torchrun, with two DataLoader workers")
			return fmt.Sprintf(`[%q, --epochs, "200", --report-every, "1", --step-time, "0.1", --workers, "2"]`,
				example), nil
		}
	}
	fmt.Println("   no PyTorch here: the trainer in Go stands in for it")
	return fmt.Sprintf(`[%q, --steps, "100000", --report-every, "1", --step-time, 100ms]`,
		filepath.Join(s.bin, "trainer")), nil
}

// within is an interval of time.
type within struct {
	Low  string `json:"low"`
	High string `json:"high"`
}

// batchScene submits thirteen jobs at once and compares when they start with what was foreseen.
func batchScene(s *stage, t *tally) error {
	first, err := s.submit(`jobs: [{name: batch, count: 13, wall_time: 2s, command: [sleep, '1.5']}]`)
	if err != nil {
		return err
	}
	var foreseen [13]*within
	for i := range foreseen {
		out, err := s.ask("why", strconv.Itoa(first+i), "--json")
		if err != nil {
			return err
		}
		var doc struct {
			Start *within `json:"start"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			return err
		}
		foreseen[i] = doc.Start
	}
	for i, w := range foreseen {
		j, err := s.done(first + i)
		if err != nil {
			return err
		}
		if w == nil { // it ran already
			continue
		}
		t.foreseen++
		in := w.Low <= j.Started && (w.High == "" || j.Started <= w.High)
		if in {
			t.inside++
		}
		fmt.Printf("   job %2d: foreseen %s to %s, started %s\n", first+i, clockOf(w.Low), clockOf(w.High),
			clockOf(j.Started))
	}
	return nil
}

// clockOf is the time of day of a time as the API has it.
func clockOf(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return "?"
	}
	return t.Local().Format("15:04:05.0")
}

// hostileJob forges the record of its end, links it to what never ends, and floods its output.
const hostileJob = `cd "$TRAINYARD_RUN_DIR"
printf '{"code":1099511627776,"ended":"9999-01-01T00:00:00Z"}' > over.json
rm -f over.json; ln -s /dev/zero over.json
rm -f order.json; ln -s /dev/zero order.json
printf '{"epoch":9223372036854775807}\n' > alive.json
head -c 30000000 /dev/zero | tr '\0' x
`

// hostileScene has a job that lies about itself; the next one is served all the same.
func hostileScene(s *stage, _ *tally) error {
	path := filepath.Join(s.dir, "hostile.sh")
	if err := os.WriteFile(path, []byte(hostileJob), 0o600); err != nil {
		return err
	}
	hostile, err := s.submit(`jobs: [{name: hostile, command: [sh, ` + strconv.Quote(path) + `]}]`)
	if err != nil {
		return err
	}
	j, err := s.done(hostile)
	if err != nil {
		return err
	}
	fmt.Printf("   it %s: %s\n", j.Outcome, strconv.QuoteToASCII(j.Text))
	next, err := s.submit(`jobs: [{name: after, gpus: 4, command: ['true']}]`)
	if err != nil {
		return err
	}
	if j, err = s.done(next); err == nil && j.Outcome != "finished" {
		err = fmt.Errorf("the next job %s, want finished", j.Outcome)
	}
	return err
}

// kills is how often the manager is killed.
const kills = 20

// killScene kills the manager again and again while jobs are submitted, one after the other. The command line tries
// again by itself.
func killScene(s *stage, t *tally) error {
	over, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			out, err := s.ask("submit", "--name", "k"+strconv.Itoa(i), "--", "true")
			if err != nil {
				failed <- err
				return
			}
			t.acknowledged = append(t.acknowledged, "k"+strconv.Itoa(i)+" "+strings.TrimSpace(out))
		}
	}()
	for range kills {
		time.Sleep(300 * time.Millisecond)
		s.kill()
		if err := s.serve(); err != nil {
			close(over)
			return errors.Join(err, <-failed)
		}
	}
	close(over)
	if err := <-failed; err != nil {
		return err
	}
	fmt.Printf("   %d kills, %d jobs acknowledged\n", kills, len(t.acknowledged))
	for _, a := range t.acknowledged {
		_, number, _ := strings.Cut(a, " ")
		id, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		if _, err := s.done(id); err != nil {
			return err
		}
	}
	return nil
}
