package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

// config is what flags and environment ask for.
type config struct {
	steps           int           // > 0
	until           int           // samples to train on, whatever the batch size, instead of steps; 0 = steps
	batch           int           // samples per step over all workers, > 0
	dataset         int           // samples in an epoch, > 0
	width           int           // workers, > 0
	rate            float64       // learning rate, > 0
	checkpointDir   string        // "" for none
	checkpointEvery int           // steps, 0 for only at the end and when asked to stop
	reportEvery     int           // steps, > 0
	stepTime        time.Duration // least wall time of a step at width 1
	parallel        float64       // share of it that width divides, 0..1
	saveTime        time.Duration // added to the save of a run that is asked to stop
	seed            uint64        // of the initial weights
	failAt          int           // step, -1 for none
	failWhen        string        // file, "" for none
	failOnce        bool
	out             string // "" for none
	ledger          identity
}

// The limits keep a mistyped number from exhausting the machine.
const (
	maxWidth = 4096
	maxBatch = 1 << 20
	maxSteps = 1 << 30
)

// baseRate is the learning rate at TRAINYARD_LR_SCALE 1, chosen by trial for the default batch.
const baseRate = 0.05

// parse reads the flags and, by getenv, the environment. Its errors are those of the user. For -h it prints the flags
// and returns flag.ErrHelp.
func parse(args []string, getenv func(string) string, stderr io.Writer) (config, error) {
	var c config
	var epochSteps int
	fs := flag.NewFlagSet("trainer", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&c.steps, "steps", 1000, "steps to train")
	fs.IntVar(&c.until, "samples", 0, "samples to train on, whatever the batch size, instead of --steps; the last "+
		"step is a whole one")
	fs.IntVar(&c.batch, "batch", 256, "global batch in samples; $TRAINYARD_BATCH_GLOBAL goes before it")
	fs.IntVar(&epochSteps, "epoch-steps", 50, "length of an epoch in steps of --batch samples: the size of the "+
		"data set")
	fs.StringVar(&c.checkpointDir, "checkpoint-dir", "", "folder of checkpoints; $TRAINYARD_CHECKPOINT_DIR goes "+
		"before it")
	fs.IntVar(&c.checkpointEvery, "checkpoint-every", 50, "steps between checkpoints; 0 saves only when stopped and "+
		"at the end")
	fs.IntVar(&c.reportEvery, "report-every", 10, "steps between progress lines")
	fs.DurationVar(&c.stepTime, "step-time", 0, "least wall time of a step at width 1; at width n it is an n-th of it")
	fs.Float64Var(&c.parallel, "parallel", 1, "share of --step-time that is divided so; the rest is not (Amdahl's law)")
	fs.DurationVar(&c.saveTime, "save-time", 0, "time added to the save on SIGTERM and SIGINT")
	fs.Uint64Var(&c.seed, "seed", 1, "seed of the initial weights")
	fs.IntVar(&c.failAt, "fail-at", -1, "exit with code 3 at this step, before it is saved; -1 for never")
	fs.StringVar(&c.failWhen, "fail-when", "", "exit with code 3 at the first step at whose start this file exists")
	fs.BoolVar(&c.failOnce, "fail-once", false, "fail only once per job; needs a checkpoint folder or a ledger to "+
		"remember it")
	fs.StringVar(&c.out, "out", "", "file for the result as JSON")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := c.checkFlags(epochSteps); err != nil {
		return c, err
	}
	c.dataset = c.batch * epochSteps
	err := c.fromEnv(getenv)
	if err == nil && c.failOnce && c.markerDir() == "" {
		err = errors.New("--fail-once needs a checkpoint folder or TRAINER_LEDGER")
	}
	return c, err
}

func (c *config) checkFlags(epochSteps int) error {
	for _, f := range []struct {
		name        string
		got, lo, hi int
	}{
		{"--steps", c.steps, 1, maxSteps},
		{"--samples", c.until, 0, maxSteps},
		{"--batch", c.batch, 1, maxBatch},
		{"--epoch-steps", epochSteps, 1, maxSteps},
		{"--checkpoint-every", c.checkpointEvery, 0, maxSteps},
		{"--report-every", c.reportEvery, 1, maxSteps},
		{"--fail-at", c.failAt, -1, maxSteps},
	} {
		if f.got < f.lo || f.got > f.hi {
			return fmt.Errorf("%s %d, want %d to %d", f.name, f.got, f.lo, f.hi)
		}
	}
	if c.stepTime < 0 || c.saveTime < 0 {
		return fmt.Errorf("--step-time %v and --save-time %v, want >= 0", c.stepTime, c.saveTime)
	}
	if !(c.parallel >= 0 && c.parallel <= 1) {
		return fmt.Errorf("--parallel %v, want 0 to 1", c.parallel)
	}
	return nil
}

func (c *config) fromEnv(getenv func(string) string) error {
	width, err := intFrom(getenv, "TRAINYARD_NUM_GPUS", 1, maxWidth)
	if err != nil {
		return err
	}
	batch, err := intFrom(getenv, "TRAINYARD_BATCH_GLOBAL", c.batch, maxBatch)
	if err != nil {
		return err
	}
	scale := 1.0
	if text := getenv("TRAINYARD_LR_SCALE"); text != "" {
		scale, err = strconv.ParseFloat(text, 64)
		if err != nil || !(scale > 0) || math.IsInf(scale, 1) {
			return fmt.Errorf("TRAINYARD_LR_SCALE %q, want a number > 0", text)
		}
	}
	c.width, c.batch, c.rate = width, batch, baseRate*scale
	if dir := getenv("TRAINYARD_CHECKPOINT_DIR"); dir != "" {
		c.checkpointDir = dir
	}
	c.ledger, err = identityFrom(getenv)
	return err
}

// intFrom returns the variable as a whole number from 1 to limit, or unset.
func intFrom(getenv func(string) string, name string, unset, limit int) (int, error) {
	text := getenv(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > limit {
		return 0, fmt.Errorf("%s %q, want a whole number from 1 to %d", name, text, limit)
	}
	return n, nil
}

// pace is the least wall time of a step.
func (c *config) pace() time.Duration {
	return time.Duration(float64(c.stepTime) * (1 - c.parallel + c.parallel/float64(c.width)))
}

// markerDir is the folder that remembers that --fail-once has failed, or "".
func (c *config) markerDir() string {
	if c.checkpointDir != "" {
		return c.checkpointDir
	}
	return c.ledger.dir
}
