package simulate

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
)

// simulateFlags are the flags of simulate as given.
type simulateFlags struct {
	trace, format, unit string
	cluster             string
	systems, sets       []string
	preset              string
	round               string
	variability, known  string
	profiles            string
	interference        string
	caps, price, carbon string
	budget              float64
	seed                uint64
	seeded              bool
	json, quiet         bool
	jobsOut, eventsOut  string
}

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --trace FILE --cluster SPEC --system NAME[,NAME...]",
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
			f.seeded = cmd.Flags().Changed("seed")
			return f.run(cmd)
		},
	}
	f.define(cmd)
	term.CompleteFlag(cmd, "system", term.ListOf(inputs.SystemNames))
	term.CompleteFlag(cmd, "preset", term.OneOf(inputs.PresetNames))
	term.CompleteFlag(cmd, "format", term.OneOf(inputs.FormatNames))
	return cmd
}

func (f *simulateFlags) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.trace, "trace", "", "trace `FILE` (CSV, may be gzipped); required")
	fs.StringVar(&f.format, "format", "", "format `NAME` of the trace (default: told by its header)")
	fs.StringVar(&f.unit, "unit", "", "what 1 means in a time of a tiresias trace: `DURATION` such as 1ms, or seconds")
	fs.StringVar(&f.cluster, "cluster", "", "cluster `SPEC`: 15x4 (nodes x GPUs), 15x4:v100, or a YAML file; required")
	fs.StringSliceVar(&f.systems, "system", nil, "systems `NAME,...` to run, see `trainyard systems`; required")
	fs.StringArrayVar(&f.sets, "set", nil, "`NAME.KEY=VALUE`: a key of a system; NAME * means all that take it; repeatable")
	fs.StringVar(&f.preset, "preset", "", "published set-up `NAME` to reproduce: "+strings.Join(inputs.PresetNames(), ", "))
	fs.StringVar(&f.round, "round", "", "decide at multiples of `SECONDS` only (default: the system's own)")
	fs.StringVar(&f.variability, "variability", "", "PM scores of the GPUs, `FILE` with gpu,node,pm_classA,...: how they differ, and what is known of it")
	fs.StringVar(&f.profiles, "profiles", "", "how fast applications train by GPUs and batch size: `PATH` of a folder of profiles, or of tables")
	fs.StringVar(&f.interference, "interference", "", "how jobs that share GPUs slow each other down: `FILE` of EaCO's tables, or of Gavel's throughputs")
	fs.StringVar(&f.caps, "power-caps", "", "what GPUs do under power caps: `FILE` of Zeus's summary")
	fs.StringVar(&f.price, "energy-price", "", "price of a kWh over time: `FILE` with start,price")
	fs.StringVar(&f.carbon, "carbon", "", "carbon of a kWh over time: `FILE` with start,grams_per_kwh")
	fs.Float64Var(&f.budget, "budget", 0, "`GPUS` that may be rented on average, for systems that rent")
	fs.StringVar(&f.known, "variability-known", "", "what is known of it instead, if that is something else: another such `FILE`")
	fs.Uint64Var(&f.seed, "seed", 0, "seed `N` of node failures and of noise in reports (default: that of the cluster file)")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the table")
	fs.StringVar(&f.jobsOut, "jobs-out", "", "write one row per system and job to `FILE.csv`")
	fs.StringVar(&f.eventsOut, "events-out", "", "write every event to `FILE.jsonl`; with several systems to FILE.SYSTEM.jsonl each")
	fs.BoolVar(&f.quiet, "quiet", false, "neither warnings nor progress on stderr")
}

// run simulates what the flags say. Nothing is written unless every system ran to its end.
func (f *simulateFlags) run(cmd *cobra.Command) error {
	c, err := f.comparison()
	if err != nil {
		return err
	}
	if !f.quiet {
		for _, w := range c.trace.Warnings {
			fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: warning: %s: %s\n", f.trace, w)
		}
		for _, w := range c.presetWarnings() {
			fmt.Fprintln(cmd.ErrOrStderr(), "trainyard: warning:", w)
		}
	}
	out, err := f.outputs(c)
	if err != nil {
		return err
	}
	defer out.discard()
	progress := cmd.ErrOrStderr()
	if f.quiet {
		progress = nil
	}
	if err := c.run(cmd.Context(), out, progress); err != nil {
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

// run carries out one system after another.
func (c *comparison) run(ctx context.Context, out *outputs, stderr io.Writer) error {
	for i := range c.runs {
		if err := c.runOne(ctx, i, out, stderr); err != nil {
			return err
		}
	}
	return nil
}

// Verbs returns the verbs that run systems on a trace.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newSimulate(),
		newSystems(),
	}
}
