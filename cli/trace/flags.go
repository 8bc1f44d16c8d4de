package trace

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/inputfile"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// traceFlags are the flags that say how a trace is read.
type traceFlags struct {
	format, unit, origin, steps, jobs, instances string
}

func (f *traceFlags) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "", "format `NAME` of the trace (default: as its header says)")
	term.CompleteFlag(cmd, "format", term.OneOf(inputs.FormatNames))
	fs.StringVar(&f.unit, "unit", "", "what 1 means in a time of a tiresias trace: `DURATION` such as 1ms, or seconds")
	fs.StringVar(&f.origin, "origin", "", "what the clock showed at time 0, where the format does not say:\n`TIME` "+
		"such as 2017-10-01T00:00:27")
	fs.StringVar(&f.steps, "steps", "", "how long an iteration takes, for formats that count them: `SECONDS`, or\na "+
		"CSV file with model, batch_size, num_gpus (may be left out) and step_s")
	fs.StringVar(&f.jobs, "jobs", "", "job table `FILE` that belongs to the task table of a pai-task trace")
	fs.StringVar(&f.instances, "instances", "", "instance table `FILE` that belongs to it")
}

// with opens what the flags name, hands the options to read, which reads the trace at path, and says what kind of error
// it returns.
func (f *traceFlags) with(path string, read func(trace.Options) error) error {
	o := trace.Options{Format: f.format}
	var err error
	if o.Unit, err = inputs.ParseUnit(f.unit); err != nil {
		return err
	}
	if o.Origin, err = parseOrigin(f.origin); err != nil {
		return err
	}
	if o.Steps, err = readSteps(f.steps); err != nil {
		return err
	}
	closeJobs, err := openTable("job table", f.jobs, &o.Jobs)
	if err != nil {
		return err
	}
	defer closeJobs()
	closeInstances, err := openTable("instance table", f.instances, &o.Instances)
	if err != nil {
		return err
	}
	defer closeInstances()
	if err := inputfile.NoFolder("trace", path); err != nil {
		return err
	}
	return simulate.TraceError(read(o))
}

// openTable sets table to the file at path, which done closes; without a path it does nothing.
func openTable(what, path string, table *io.Reader) (done func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	err = inputfile.NoFolder(what, path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want that of PAI", what, err)
	}
	*table = f
	return func() { f.Close() }, nil
}

// parseOrigin reads --origin; empty is the zero time.
func parseOrigin(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, term.Usagef("--origin %q, want a date and time such as 2017-10-01T00:00:27", text)
}

// readSteps reads --steps: seconds, or the path of a table; empty is nil.
func readSteps(text string) (*trace.StepTimes, error) {
	if text == "" {
		return nil, nil
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		if !(x >= 1e-9 && x <= 1e9) {
			return nil, term.Usagef("--steps %q, want seconds above 0, such as 0.2", text)
		}
		return trace.EveryStep(time.Duration(x * 1e9)), nil
	}
	if err := inputfile.NoFolder("steps", text); err != nil {
		return nil, err
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, fmt.Errorf("steps: %w; want seconds, or a CSV file with model and step_s", err)
	}
	defer f.Close()
	s, err := trace.ReadSteps(f, text)
	if err != nil {
		return nil, term.Malformed(err)
	}
	return s, nil
}
