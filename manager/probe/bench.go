package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trainyard/trainyard/driver/local"
	"github.com/trainyard/trainyard/driver/local/device"
)

// Kinds of readings.
const (
	wallTime     = "wall time"
	reportedTime = "seconds="
	reportedRate = "iterations_per_s="
	bundled      = "bundled work"
	killWait     = 2 * time.Second // between SIGTERM and the end of waiting for a command that was interrupted
	keepOutput   = 64 << 10        // bytes of output that are looked at, the last ones
)

// Command is the Bench that runs a command by /bin/sh, with the environment that jobs get, and shows it one device of
// devices. It measures the wall time of the command from start to end, or what the command prints last of
//
//	seconds=12.5
//	iterations_per_s=80
//
// as a word of its own on stdout. Whatever the command leaves running is killed.
func Command(command string, devices device.Backend) Bench {
	return func(ctx context.Context, d device.Device) (Reading, error) {
		var out, complaints tail
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
		cmd.Env = append(append(local.Passed(), devices.Env([]device.Device{d})...), "TRAINYARD_NUM_GPUS=1",
			"TRAINYARD_DEVICES="+d.Name)
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaints, killWait
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		began := time.Now()
		if err := cmd.Start(); err != nil {
			return Reading{}, err
		}
		err := cmd.Wait()
		took := time.Since(began)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind; none is no error of ours
		switch {
		case errors.Is(err, exec.ErrWaitDelay):
			return Reading{}, errors.New("it ended and left processes behind that hold its output, want it to wait " +
				"for them")
		case err != nil:
			return Reading{}, fmt.Errorf("%w%s", err, complaints.lastLine())
		}
		return read(out.String(), took)
	}
}

// read returns what a command reported, else how long it took.
func read(out string, took time.Duration) (Reading, error) {
	words := strings.Fields(out)
	for i := len(words) - 1; i >= 0; i-- {
		for _, kind := range []string{reportedTime, reportedRate} {
			text, ok := strings.CutPrefix(words[i], kind)
			if !ok {
				continue
			}
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !(x > 0) || math.IsInf(x, 1) {
				return Reading{}, fmt.Errorf("it printed %.80q, want %s and a number > 0", words[i], kind)
			}
			if kind == reportedRate {
				x = 1 / x
			}
			return Reading{x, kind}, nil
		}
	}
	return Reading{took.Seconds(), wallTime}, nil
}

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

// Write adds p, and lets go of all but the last keepOutput bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - keepOutput; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string { return string(t.b) }

// lastLine returns the last line that says something, with a colon before it, or "".
func (t *tail) lastLine() string {
	lines := strings.Split(strings.TrimSpace(t.String()), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Sprintf(": %.200s", last)
	}
	return ""
}

// Side and rounds of the bundled work: a matrix that fits the second-level cache of a core, some tenths of a second.
const (
	side  = 192
	turns = 24
)

// CPU is the Bench for CPU slots: products of small matrices, compute-bound, on one processor. A slot is no processor
// of its own, so that it shows what else the machine does rather than what the slot is.
func CPU(ctx context.Context, _ device.Device) (Reading, error) {
	a, b, c := make([]float32, side*side), make([]float32, side*side), make([]float32, side*side)
	for i := range a {
		a[i], b[i] = float32(i%7)/8, float32(i%5)/8
	}
	began := time.Now()
	for range turns {
		if ctx.Err() != nil {
			return Reading{}, ctx.Err()
		}
		multiply(a, b, c)
		a, c = c, a
	}
	return Reading{time.Since(began).Seconds(), bundled}, nil
}

// multiply sets c to a times b over side, so that repeating it overflows nothing.
func multiply(a, b, c []float32) {
	clear(c)
	for i := range side {
		row := c[i*side : (i+1)*side]
		for k := range side {
			x, line := a[i*side+k]/side, b[k*side:(k+1)*side]
			for j, y := range line {
				row[j] += x * y
			}
		}
	}
}
