package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/internal/parallel"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/system"
	"github.com/trainyard/trainyard/system/key"
	"github.com/trainyard/trainyard/trace"
)

// simulateFlags are the flags of simulate: the request that all systems share, and what is asked of each.
type simulateFlags struct {
	request            simulate.Request
	seed               uint64
	round, unit        string
	systems, sets      []string
	json, quiet        bool
	timing             bool
	parallel, seeds    int
	jobsOut, eventsOut string
	report             term.ReportFlags
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --trace FILE --cluster SPEC [--system NAME,...]",
		Short: "Run systems on a trace and a cluster, and compare them",
		Long: `Runs each system on the same trace and cluster to the end and prints one row per
system. Changes are against the first system. Times are those of finished jobs;
queue is the time without GPUs; busy is the share of GPU time in which work went
on.

Energy and cost are those of the power and prices the cluster file states;
without any they are 0. In the document of --json null means unknown: a preset
that runs a simulator of its own knows nothing of nodes.

` + inputs.FormatsHelp(),
		Example: `  trainyard simulate --trace jobs.csv --cluster 15x4 --system fifo,tiresias-las
  trainyard simulate --trace jobs.csv --cluster mixed.yaml --system fifo,las \
      --set '*.restart_overhead=0' --set las.quantum=300 --jobs-out jobs-out.csv`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") {
				f.request.From.Seed = &f.seed
			}
			if !cmd.Flags().Changed("system") {
				f.systems = []string{system.Default}
			}
			if cmd.Flags().Changed("budget") && f.request.Budget == 0 {
				return term.Usagef("--budget 0, want a number of GPUs > 0, or none where a key says it")
			}
			err := errors.Join(f.atOnce(cmd.Flags().Changed("parallel")), f.checkSeeds(cmd.Flags().Changed("seeds")))
			if err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	f.define(cmd)
	term.CompleteFlag(cmd, "system", term.ListOf(inputs.SystemNames))
	term.CompleteFlag(cmd, "set", term.StartOf(inputs.CompleteSets(simulated)))
	term.CompleteFlag(cmd, "preset", term.OneOf(simulate.PresetNames))
	term.CompleteFlag(cmd, "format", term.OneOf(inputs.FormatNames))
	return cmd
}

func (f *simulateFlags) define(cmd *cobra.Command) {
	fs, r, from := cmd.Flags(), &f.request, &f.request.From
	fs.SortFlags = false
	fs.StringVar(&from.Trace, "trace", "", "trace `FILE` (CSV, may be gzipped), - for the standard input; required")
	fs.StringVar(&from.Format, "format", "", "format `NAME` of the trace (default: as its header says)")
	fs.StringVar(&f.unit, "unit", "", "what 1 means in a time of a tiresias trace: `DURATION` such as 1ms, or seconds")
	fs.StringVar(&from.Cluster, "cluster", "", "cluster `SPEC`: 15x4 (nodes x GPUs), 15x4:v100, or a YAML file; "+
		"required")
	fs.StringSliceVar(&f.systems, "system", nil, "systems `NAME,...` to run, see `trainyard systems` "+
		"(default: "+system.Default+")")
	fs.StringArrayVar(&f.sets, "set", nil, "`NAME.KEY=VALUE`: a key of a system; NAME * means all that take it; "+
		"repeatable")
	fs.StringVar(&r.Preset, "preset", "", "published set-up `NAME` to reproduce: "+strings.Join(simulate.PresetNames(),
		", "))
	fs.StringVar(&f.round, "round", "", "decide at multiples of `SECONDS` only (default: the system's own)")
	fs.StringVar(&from.Scores, "variability", "", "PM scores of the GPUs, `FILE` with gpu,node,pm_classA,...: how "+
		"they differ, and what is known of it")
	fs.StringVar(&from.Apps, "profiles", "", "how fast applications train by GPUs and batch size: `PATH` of a "+
		"folder of profiles, or of tables")
	fs.StringVar(&from.Sharing, "interference", "",
		"how jobs that share GPUs slow each other down: `FILE` of EaCO's tables, or of Gavel's throughputs")
	fs.StringVar(&from.Caps, "power-caps", "", "what GPUs do under power caps: `FILE` of Zeus's summary")
	fs.StringVar(&from.Price, "energy-price", "", "price of a kWh over time: `FILE` with start,price")
	fs.StringVar(&from.Carbon, "carbon", "", "carbon of a kWh over time: `FILE` with start,grams_per_kwh")
	fs.Float64Var(&r.Budget, "budget", 0, "`GPUS` that may be rented on average, for systems that rent")
	fs.StringVar(&from.Known, "variability-known", "",
		"what is known of it instead, if that is something else: another such `FILE`")
	fs.Uint64Var(&f.seed, "seed", 0, "seed `N` of node failures and of noise in reports (default: that of the "+
		"cluster file)")
	fs.IntVar(&f.seeds, "seeds", 0, "simulate each system with `N` seeds from that on; print means and their 95 % "+
		"intervals")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the table")
	fs.BoolVar(&f.timing, "timing", false, "measure how long runs and decisions take (default: 0 in the document, so "+
		"that equal runs print equal bytes)")
	fs.IntVar(&f.parallel, "parallel", 0, "simulate at most `N` systems at a time (default: as many as there are "+
		"processors; with --timing one)")
	fs.StringVar(&f.jobsOut, "jobs-out", "", "write one row per system and job to `FILE.csv`")
	fs.StringVar(&f.eventsOut, "events-out", "", "write every event to `FILE.jsonl`; with several systems to "+
		"FILE.SYSTEM.jsonl each")
	f.report.Define(fs)
	fs.BoolVar(&f.quiet, "quiet", false, "neither warnings nor progress on stderr")
}

// atOnce settles how many systems are simulated at a time: those of which times are measured must not disturb each
// other.
func (f *simulateFlags) atOnce(given bool) error {
	switch {
	case !given && f.timing:
		f.parallel = 1
	case !given:
		f.parallel = runtime.GOMAXPROCS(0)
	case f.parallel < 1:
		return term.Usagef("--parallel %d, want a number of systems >= 1", f.parallel)
	case f.parallel > 1 && f.timing:
		return term.Usagef("--parallel %d with --timing: want one at a time, or they slow each other down", f.parallel)
	}
	return nil
}

// run simulates what the flags say. Nothing is written unless every system ran to its end.
func (f *simulateFlags) run(cmd *cobra.Command) error {
	c, err := f.comparison()
	if err != nil {
		return err
	}
	stderr := cmd.ErrOrStderr()
	if f.quiet {
		stderr = nil
	} else {
		c.warn(stderr)
	}
	if f.seeds > 0 {
		if bad := c.bySeed(f.seeds); bad != nil {
			return bad
		}
	}
	out, err := f.outputs(c)
	if err != nil {
		return err
	}
	defer out.discard()
	if err := f.runAll(cmd.Context(), c, out, stderr); err != nil {
		return err
	}
	failed := c.takeFailed(out)
	if len(c.runs) == 0 {
		return failed
	}
	if err := f.write(cmd, c, out, stderr); err != nil {
		return err
	}
	return failed
}

// write prints what came of the runs, and keeps their files.
func (f *simulateFlags) write(cmd *cobra.Command, c *comparison, out *outputs, stderr io.Writer) error {
	if err := out.report.Fill(c.report(cmd), stderr); err != nil {
		return err
	}
	if err := out.commit(c); err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), c.document())
	}
	return term.WriteText(cmd.OutOrStdout(), c.text(term.WidthOf(cmd.OutOrStdout())))
}

// runAll runs all systems, with a bar on stderr if that is a terminal and they take long. Whether one failed
// is in its run: the others go on. An error means that they were interrupted.
func (f *simulateFlags) runAll(ctx context.Context, c *comparison, out *outputs, stderr io.Writer) error {
	bar := term.NewProgress(stderr, strings.Join(slices.Compact(c.names()), ", "), len(c.runs)*len(c.shared.Trace.Jobs))
	defer bar.Close()
	tasks := make([]parallel.Task, len(c.runs))
	for i := range c.runs {
		c.runs[i].timed = f.timing
		tasks[i] = func(ctx context.Context) error {
			r := &c.runs[i]
			if r.err = r.run(ctx, bar, out.eventFile(i)); c.seeds > 0 {
				r.oneOfMany()
			}
			return ctx.Err()
		}
	}
	return parallel.Do(ctx, f.parallel, tasks, nil)
}

// comparison is several systems on one trace and one cluster, which shared holds.
type comparison struct {
	shared  *simulate.Request
	summary trace.Summary
	runs    []systemRun
	failed  []failedRun // taken from runs
	seeds   int         // with which each system is simulated; 0 = with one
	same    []string    // systems that seeds make no difference to
}

// systemRun is one of them: what is asked for, and what came of it.
type systemRun struct {
	request simulate.Request
	outcome *simulate.Outcome
	err     error          // it failed
	hash    *eventlog.Hash // nil: not asked for
	timed   bool           // it measures its own time
	seed    uint64         // of several
}

// load checks the values of the flags and reads the files that all systems share.
func (f *simulateFlags) load(infos []*system.Info, settings []map[string]string) error {
	if err := f.parse(infos); err != nil {
		return err
	}
	if err := f.checkPaths(infos, settings); err != nil {
		return err
	}
	if err := f.request.Load(); err != nil {
		return requestError(err)
	}
	return nil
}

// comparison reads what the flags name and checks all of it before anything runs.
func (f *simulateFlags) comparison() (*comparison, error) {
	infos, settings, err := f.chosen()
	if err == nil {
		err = f.load(infos, settings)
	}
	if err != nil {
		return nil, err
	}
	c := &comparison{shared: &f.request}
	measured, err := simulate.Measured(c.shared.Trace, c.shared.Cluster, c.shared.Apps)
	if err != nil {
		return nil, term.Usage(err)
	}
	c.summary = trace.Describe(measured)
	for i, info := range infos {
		r := systemRun{request: f.request}
		r.request.System, r.request.Settings = info.Name, settings[i]
		if err := r.request.Load(); err != nil {
			return nil, requestError(err)
		}
		if err := r.request.Check(); err != nil {
			if errors.Is(err, system.ErrBudget) {
				err = fmt.Errorf("%w; see --budget", err)
			}
			return nil, term.Usage(err)
		}
		if f.json || f.report.Path != "" {
			r.hash = new(eventlog.Hash)
		}
		if f.report.Path != "" && !r.replica() {
			r.request.Timeline = new(timeline.Timeline)
		}
		c.runs = append(c.runs, r)
	}
	return c, nil
}

// chosen returns the systems asked for and the settings of each.
func (f *simulateFlags) chosen() ([]*system.Info, []map[string]string, error) {
	if err := f.complete(); err != nil {
		return nil, nil, err
	}
	infos, err := inputs.SystemsNamed(f.systems)
	if err != nil {
		return nil, nil, err
	}
	settings, err := inputs.ParseSets(f.sets, infos,
		func(i *system.Info) key.List { return simulate.KeysOf(i, f.request.Preset) })
	return infos, settings, err
}

// complete reports the flags that are missing, and outputs that are no files.
func (f *simulateFlags) complete() error {
	var missing []string
	if f.request.From.Trace == "-" {
		f.request.From.Trace = "/dev/stdin"
	}
	if f.request.From.Trace == "" {
		missing = append(missing, "--trace FILE")
	}
	if f.request.From.Cluster == "" {
		missing = append(missing, "--cluster SPEC")
	}
	if len(f.systems) == 0 {
		missing = append(missing, "--system NAME")
	}
	if len(missing) > 0 {
		return term.Usagef("simulate: missing %s; see `trainyard simulate --help`", strings.Join(missing, ", "))
	}
	for _, o := range []term.PathUse{{What: "--jobs-out", Path: f.jobsOut}, {What: "--events-out", Path: f.eventsOut}} {
		if o.Path == "-" {
			return term.Usagef("%s -: want a file; /dev/stdout is the standard output, ./- a file named -", o.What)
		}
	}
	return f.report.Check()
}

// parse reads the flags that are more than words.
func (f *simulateFlags) parse(infos []*system.Info) (err error) {
	if f.request.Round, err = parseRound(f.round); err != nil {
		return err
	}
	if f.request.From.Unit, err = inputs.ParseUnit(f.unit); err != nil {
		return err
	}
	budget := f.request.Budget
	rents := func(i *system.Info) bool { return slices.Contains(i.KeyNames(), "budget") }
	switch {
	case !(budget >= 0) || math.IsInf(budget, 0):
		return term.Usagef("--budget %v, want a number of GPUs > 0", budget)
	case budget > 0 && !slices.ContainsFunc(infos, rents):
		return term.Usagef("--budget %v: none of %s rents to a budget, as boa does", budget,
			strings.Join(inputs.NamesOf(infos), ", "))
	}
	return nil
}

// parseRound reads --round; empty is 0.
func parseRound(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0.001) || x > 1e9 {
		return 0, term.Usagef("--round %q, want seconds, from 0.001 to 1e9, such as 60", text)
	}
	return time.Duration(math.Ceil(x * 1e9)), nil
}

// requestError gives what is wrong with the files of a request its exit code.
func requestError(err error) error {
	if field := (*simulate.Error)(nil); errors.As(err, &field) && field.Field == "Apps" {
		return inputs.AppsError(err)
	}
	return inputs.KeyError(err)
}

// warn says what is odd about the trace, and in what the request departs from its preset.
func (c *comparison) warn(stderr io.Writer) {
	for _, w := range c.shared.Trace.Warnings {
		fmt.Fprintf(stderr, "trainyard: warning: %s: %s\n", c.shared.From.Trace, w)
	}
	warnings := slices.Concat(c.presetWarnings(), c.rigidWarning(), c.kindsWarning(), c.suffixWarning(),
		c.priorityWarning(), c.preemptWarning())
	for _, w := range warnings {
		fmt.Fprintln(stderr, "trainyard: warning:", w)
	}
}

// run runs one system; events is where its log goes, nil if none is asked for.
func (r *systemRun) run(ctx context.Context, bar *term.Progress, events *term.OutFile) error {
	began := time.Now()
	if r.timed {
		r.request.Clock = func() int64 { return int64(time.Since(began)) }
	}
	r.request.Sinks = bar.Sinks()
	if r.hash != nil {
		r.request.Sinks = append(r.request.Sinks, r.hash)
	}
	var log *eventlog.Writer
	if events != nil {
		r.request.Log = func(h eventlog.Header) eventlog.Sink {
			h.Version, h.Origin = term.OwnBuild().Version, "time 0 of the trace"
			log = eventlog.NewWriter(events, h)
			return log
		}
	}
	outcome, err := r.request.Run(ctx)
	if err != nil {
		return err
	}
	r.outcome = outcome
	if r.timed {
		r.outcome.Wall = time.Since(began).Seconds()
	}
	if log == nil {
		return nil
	}
	if err := log.Close(); err != nil {
		return err
	}
	return events.Flush() // now: a full disk is this run's failure
}

// replica reports whether a simulator of the preset's own runs the system: then there is no log, and nodes are unknown.
func (r *systemRun) replica() bool { return r.request.Engine() != simulate.Engine }

// Verbs returns the verbs that run systems on a trace.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newSimulate(),
		newSystems(),
	}
}

// simulated are the keys that a system takes in a simulation without preset.
func simulated(info *system.Info) key.List { return simulate.KeysOf(info, "") }
