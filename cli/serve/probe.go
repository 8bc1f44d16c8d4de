package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/driver/local/device"
	"github.com/trainyard/trainyard/driver/local/shim"
	"github.com/trainyard/trainyard/manager/probe"
	"github.com/trainyard/trainyard/model/variability"
)

// probeFlags are the flags of probe as given.
type probeFlags struct {
	slots, runs int
	classes     []string
	parallel    bool
	limit       float64
	out, raw    string
	json, quiet bool
}

func newProbe() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe [--class NAME=COMMAND]... [--out FILE.csv]",
		Short: "Measure how the GPUs of this machine differ in speed",
		Long: `Runs a measurement on each GPU of this machine, or on each CPU slot, again and
again, and writes the scores that ` + "`simulate --variability`" + ` reads: 1 is the
median GPU, larger is slower.

A class of applications is measured by a command of yours, run by /bin/sh with
one GPU to see (CUDA_VISIBLE_DEVICES, TRAINYARD_DEVICES). Its wall time counts,
or what it prints last: a word seconds=1.5 or iterations_per_s=80. Name classes
from the one that suffers most from slow GPUs on. CPU slots have a measurement
of our own; GPUs have none. See docs/guide/probe.md.

One run is made at a time, one GPU after another; GPUs must be idle, and no job
of ours starts on them meanwhile. Exit code 10 says that a command failed or
took too long; then, and after Ctrl-C, nothing is written.`,
		Example: `  trainyard probe --class 'A=python resnet.py' --class 'B=python bert.py' \
      --out scores.csv
  trainyard probe --slots 4`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.probe(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringArrayVar(&f.classes, "class", nil, "measure class NAME by a command, `NAME=COMMAND`; repeatable")
	fs.IntVar(&f.runs, "runs", 5, "runs `N` of each class on each GPU, at least 3")
	fs.StringVar(&f.out, "out", "", "write the scores to `FILE.csv`")
	fs.StringVar(&f.raw, "raw", "", "write each run to `FILE.csv`; with several classes to FILE.CLASS.csv each")
	fs.IntVar(&f.slots, "slots", 0, "measure `N` CPU slots (default: the GPUs, or a slot per processor where there "+
		"are none)")
	fs.BoolVar(&f.parallel, "parallel", false, "run all GPUs at once: shows what slows them down together")
	fs.Float64Var(&f.limit, "limit", 600, "`SECONDS` a run may take")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the table")
	fs.BoolVar(&f.quiet, "quiet", false, "neither warnings nor progress on stderr")
	return cmd
}

// probe measures and writes. Nothing is written unless all runs were made.
func (f *probeFlags) probe(cmd *cobra.Command) error {
	o, devices, err := f.options(cmd)
	if err != nil {
		return err
	}
	files, err := f.outputs(o.Classes)
	if err != nil {
		return err
	}
	defer files.discard()
	release, err := hold(cmd.Context(), devices, o.Devices)
	if err != nil {
		return err
	}
	defer release()
	r, err := probe.Measure(cmd.Context(), o)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return &term.CodedError{Code: term.ExitJobFailed, Err: err}
	}
	if !f.quiet {
		for _, w := range probeWarnings(r) {
			fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: warning:", w)
		}
	}
	if err := files.commit(r); err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), newProbeDoc(r, &o))
	}
	return term.WriteText(cmd.OutOrStdout(), probeText(r, f.out, term.WidthOf(cmd.OutOrStdout())))
}

// options checks the flags.
func (f *probeFlags) options(cmd *cobra.Command) (probe.Options, device.Backend, error) {
	o := probe.Options{Runs: f.runs, Parallel: f.parallel, Now: time.Now}
	if f.runs < probe.MinRuns {
		return o, nil, term.Usagef("--runs %d, want at least %d: a single odd one must not decide", f.runs,
			probe.MinRuns)
	}
	if !(f.limit >= 0.001 && f.limit <= 1e9) {
		return o, nil, term.Usagef("--limit %v, want seconds, from 0.001 to 1e9", f.limit)
	}
	o.Limit = time.Duration(f.limit * 1e9)
	devices, own, err := f.devices(cmd.Context(), cmd.Flags().Changed("slots"))
	if err != nil {
		return o, nil, err
	}
	if o.Devices, err = devices.List(cmd.Context()); err != nil {
		return o, nil, err
	}
	if o.Classes, err = f.measured(devices, own); err != nil {
		return o, nil, err
	}
	if o.Node, err = os.Hostname(); err != nil {
		o.Node = "localhost"
	}
	if !f.quiet {
		done, all := 0, f.runs*len(o.Devices)*len(o.Classes)
		o.Reported = func(r probe.Run) {
			done++
			fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d: class %s, run %d, %s: %.4g s\n", done, all,
				o.Classes[r.Class].Name, r.Number+1, o.Devices[r.Device].Name, r.Time)
		}
	}
	return o, devices, nil
}

// devices are what is measured, and the measurement of our own that there is for them; given says that --slots was.
func (f *probeFlags) devices(ctx context.Context, given bool) (device.Backend, probe.Bench, error) {
	if err := checkSlots(f.slots); given && err != nil {
		return nil, nil, err
	}
	if !given {
		if gpus, found := device.Find(ctx); found {
			return gpus, nil, nil
		}
		f.slots = runtime.NumCPU()
	}
	return device.Slots(f.slots), probe.CPU, nil
}

// measured returns the classes asked for; without any, one that is measured by own.
func (f *probeFlags) measured(devices device.Backend, own probe.Bench) ([]probe.Class, error) {
	if len(f.classes) == 0 {
		if own == nil {
			return nil, term.Usagef("probe: there is no measurement of our own for GPUs, want one of yours, such as " +
				"--class 'A=python resnet.py'")
		}
		return []probe.Class{{Name: variability.Labels[0], Run: own}}, nil
	}
	var list []probe.Class
	for _, text := range f.classes {
		name, command, _ := strings.Cut(text, "=")
		if name == "" || strings.TrimSpace(command) == "" || strings.ContainsFunc(name, notInName) || len(name) > 64 {
			return nil, term.Usagef("--class %q, want NAME=COMMAND such as 'A=python resnet.py', the name of "+
				"letters, digits, - and _", text)
		}
		if slices.ContainsFunc(list, func(c probe.Class) bool { return c.Name == name }) {
			return nil, term.Usagef("--class %s twice, want it once", name)
		}
		list = append(list, probe.Class{Name: name, Run: probe.Command(command, devices)})
	}
	if len(list) > variability.MaxClasses {
		return nil, term.Usagef("--class: %d classes, want at most %d", len(list), variability.MaxClasses)
	}
	return list, nil
}

func notInName(c rune) bool {
	return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// hold keeps jobs off the devices until release is called, and refuses those that are in use.
func hold(ctx context.Context, devices device.Backend, list []device.Device) (release func(), err error) {
	var locks []*os.File
	release = func() {
		for _, l := range locks {
			_ = l.Close()
		}
	}
	if devices.Locks() != "" {
		for _, d := range list {
			l := shim.State("").DeviceLock(d.Name, devices.Locks())
			l.Node, l.Part = devices.Node(&d), d.Slice != ""
			taken, held := l.Take(false)
			if held != nil {
				release()
				return nil, inUse(d, held)
			}
			locks = append(locks, taken...)
		}
	}
	s, err := devices.Sample(ctx)
	for _, d := range list {
		if err != nil {
			break
		}
		if users := s.Readings[d.Name].Processes; len(users) > 0 {
			err = &term.CodedError{Code: term.ExitConflict,
				Err: fmt.Errorf("%s is in use by process %d, want it idle: what is measured next to others is not "+
					"the GPU", d.Name, users[0].PID)}
		}
	}
	if err != nil {
		release()
	}
	return release, err
}

func inUse(d device.Device, err error) error {
	if errors.Is(err, shim.ErrHeld) {
		return &term.CodedError{Code: term.ExitConflict,
			Err: fmt.Errorf("%s is held by a job or another probe, want it idle", d.Name)}
	}
	return err
}

// probeFiles are the files a probe writes, all of them or none.
type probeFiles struct {
	scores *term.OutFile   // nil = not asked for
	raw    []*term.OutFile // one per class; empty = not asked for
}

// outputs creates all files asked for, so that a wrong name is found before anything runs.
func (f *probeFlags) outputs(classes []probe.Class) (*probeFiles, error) {
	var paths []string
	switch {
	case f.raw != "" && len(classes) == 1:
		paths = []string{f.raw}
	case f.raw != "":
		for _, c := range classes {
			paths = append(paths, term.WithName(f.raw, c.Name))
		}
	}
	for _, path := range paths {
		if f.out != "" && term.SamePath(path, f.out) {
			return nil, term.Usagef("--out and --raw both write %s, want two files", f.out)
		}
	}
	files := &probeFiles{}
	var err error
	if f.out != "" {
		files.scores, err = term.CreateOut(f.out)
	}
	for _, path := range paths {
		if err == nil {
			var out *term.OutFile
			if out, err = term.CreateOut(path); err == nil {
				files.raw = append(files.raw, out)
			}
		}
	}
	if err != nil {
		files.discard()
	}
	return files, err
}

// commit writes what was measured and gives the files their names.
func (p *probeFiles) commit(r *probe.Result) error {
	for i, out := range p.raw {
		if err := cmp.Or(r.Classes[i].WriteRuns(out), out.Commit()); err != nil {
			return err
		}
	}
	if p.scores == nil {
		return nil
	}
	return cmp.Or(r.Scores.WriteCSV(p.scores), p.scores.Commit())
}

// discard removes what was not committed.
func (p *probeFiles) discard() {
	if p.scores != nil {
		p.scores.Discard()
	}
	for _, f := range p.raw {
		f.Discard()
	}
}
