package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// training is one run: from the start or a checkpoint to the end, a signal or a failure.
type training struct {
	config
	*model
	step           int       // steps applied
	samples        int       // samples seen in them
	saved          int       // the step of the newest checkpoint, -1 if none
	reported       int       // the step of the last progress line, -1 if none
	due            time.Time // when the step before was to be over
	ledger         *ledger
	stdout, stderr io.Writer
}

// result is what a finished run answers.
type result struct {
	Steps   int     `json:"steps"`
	Loss    float64 `json:"loss"`
	Hash    string  `json:"hash"`
	Width   int     `json:"width"`
	Samples int     `json:"samples"`

	Accuracy float64 `json:"accuracy"` // on the test samples
}

func newTraining(c config, l *ledger, stdout, stderr io.Writer) *training {
	return &training{config: c, model: newModel(c.seed, c.width), saved: -1, reported: -1, ledger: l, stdout: stdout,
		stderr: stderr}
}

// resume continues from the newest checkpoint, if there is one.
func (t *training) resume() error {
	if t.checkpointDir == "" {
		return nil
	}
	if err := os.MkdirAll(t.checkpointDir, 0o777); err != nil {
		return err
	}
	c, ok, err := load(t.checkpointDir, t.stderr)
	if err != nil || !ok {
		return err
	}
	if c.Seed != t.seed {
		return fmt.Errorf("checkpoint of --seed %d, want %d", c.Seed, t.seed)
	}
	t.step, t.samples, t.weights, t.saved = c.Step, c.Samples, c.Weights, c.Step
	fmt.Fprintf(t.stderr, "trainer: resumed at step %d, saved by width %d, now width %d\n", c.Step, c.Width, t.width)
	return t.ledger.resume(t.step)
}

// run trains until the last step, a signal from stop or a failure, and returns the exit code.
//
// A step counts when its wall time is over: a signal that interrupts the wait drops the gradient, and the next run
// computes it again. Otherwise a job that is stopped often would be faster than one left alone.
func (t *training) run(stop <-chan os.Signal) (code int, err error) {
	if err := t.report(); err != nil {
		return exitError, err
	}
	for {
		// A failure comes before the save at the same step, so that it costs work, as a crash does.
		fails, err := t.failsHere()
		if err != nil || fails {
			return exitFailed, err
		}
		if t.step >= t.total() {
			return exitDone, t.finish()
		}
		if t.checkpointEvery > 0 && t.step > 0 && t.step%t.checkpointEvery == 0 {
			if err := t.save(); err != nil {
				return exitError, err
			}
			t.due = time.Now() // a save takes its time
		}
		t.due = t.next(time.Now())
		grad := t.gradient(t.samples, t.batch, t.dataset)
		if s := wait(stop, time.Until(t.due)); s != nil {
			return t.preempted(s)
		}
		t.apply(grad, t.rate)
		t.step++
		t.samples += t.batch
		if t.step%t.reportEvery == 0 || t.step == t.total() {
			if err := t.report(); err != nil {
				return exitError, err
			}
		}
	}
}

// mostLate is how late a step may be that is made up for.
const mostLate = time.Second

// next returns when a step that starts now is to be over. One that follows another is paced from when that was to be
// over, not from when it was: where there are more processes than processors, they wake up late, and what they stand
// for, steps on devices of their own, would not wait for that.
func (t *training) next(now time.Time) time.Time {
	from := t.due
	if now.Sub(from) > mostLate {
		from = now
	}
	return from.Add(t.pace())
}

// total returns the steps at the end, as far as the batch size stays what it is.
func (t *training) total() int {
	if t.until == 0 {
		return t.steps
	}
	return t.step + (max(t.until-t.samples, 0)+t.batch-1)/t.batch
}

// wait returns after d, which may be negative, with nil, or as soon as a signal is there.
func wait(stop <-chan os.Signal, d time.Duration) os.Signal {
	if d <= 0 {
		select {
		case s := <-stop:
			return s
		default:
			return nil
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case s := <-stop:
		return s
	case <-timer.C:
		return nil
	}
}

// report prints the progress line, once for each step.
func (t *training) report() error {
	if t.reported == t.step {
		return nil
	}
	t.reported = t.step
	loss := t.loss()
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("step %d: loss %v: the learning rate %v is too high", t.step, loss, t.rate)
	}
	fmt.Fprintf(t.stdout, "TRAINYARD step=%d total=%d loss=%.6g samples=%d epoch=%d\n",
		t.step, t.total(), loss, t.samples, t.samples/t.dataset)
	return nil
}

// save writes a checkpoint, if there is a folder for it and none of this step.
func (t *training) save() error {
	if t.checkpointDir == "" || t.saved == t.step {
		return nil
	}
	c := checkpoint{Step: t.step, Samples: t.samples, Seed: t.seed, Width: t.width, Batch: t.batch, Weights: t.weights}
	if err := c.save(t.checkpointDir); err != nil {
		return err
	}
	t.saved = t.step
	fmt.Fprintf(t.stdout, "TRAINYARD saved step=%d\n", t.step)
	return nil
}

// failsHere says whether --fail-at or --fail-when wants the run to fail now. With --fail-once the first run to do so
// leaves a file behind, and no later one does.
func (t *training) failsHere() (bool, error) {
	if t.step != t.failAt && !t.failsNow() {
		return false, nil
	}
	if t.failOnce {
		name := "failed-once"
		if t.checkpointDir == "" { // a ledger is shared by all jobs
			name = "job-" + t.config.ledger.job + "." + name
		}
		f, err := os.OpenFile(filepath.Join(t.markerDir(), name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		f.Close()
	}
	fmt.Fprintf(t.stderr, "trainer: failing at step %d, as asked\n", t.step)
	return true, nil
}

// failsNow says whether the file of --fail-when is there.
func (t *training) failsNow() bool {
	if t.failWhen == "" {
		return false
	}
	_, err := os.Stat(t.failWhen)
	return err == nil
}

// preempted saves and says so. Further signals are not read: the save is not interrupted.
func (t *training) preempted(s os.Signal) (code int, err error) {
	if err := t.report(); err != nil {
		return exitError, err
	}
	code = exitPreempted
	if t.checkpointDir == "" {
		fmt.Fprintf(t.stderr, "trainer: %v at step %d, and no folder to save in\n", s, t.step)
		code = exitSignal
		if n, ok := s.(syscall.Signal); ok {
			code += int(n)
		}
	} else {
		time.Sleep(t.saveTime)
		if err := t.save(); err != nil {
			return exitError, err
		}
	}
	fmt.Fprintf(t.stdout, "TRAINYARD preempted step=%d signal=%v\n", t.step, s)
	return code, nil
}

// finish saves, so that a run started once more ends at once with the same answer, and gives the result.
func (t *training) finish() error {
	if err := t.save(); err != nil {
		return err
	}
	r := result{t.step, t.loss(), t.hash(), t.width, t.samples, t.accuracy()}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if t.out != "" {
		if err := writeFile(t.out, t.out+".tmp", data); err != nil {
			return err
		}
	}
	fmt.Fprintf(t.stdout, "%sTRAINYARD done steps=%d loss=%.6g hash=%s\n", data, r.Steps, r.Loss, r.Hash)
	return nil
}
