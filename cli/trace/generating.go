package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

// generateFlags are the flags of trace generate as given.
type generateFlags struct {
	like       string
	jobs       int
	seed       uint64
	days, load float64
	cluster    string
}

func newTraceGenerate() *cobra.Command {
	var f generateFlags
	cmd := &cobra.Command{
		Use:   "generate --like SITE --jobs N",
		Short: "Write a trace like that of a known cluster to stdout",
		Long: `Draws jobs like those of a known cluster and writes them to stdout, in order of
submission, in Trainyard's own format: arrivals by hour and weekday from a
Monday, 00:00, on, widths, durations by width, users, end states.

  philly   Microsoft 2017: bursts of like jobs, virtual clusters
  venus    SenseTime 2020: one of the four clusters of Helios
  pai      Alibaba 2020, as in the public sample of 8 % of its tasks
  seren    Shanghai AI Laboratory 2023: from published figures, not from rows

Jobs come at the rate of the site unless --days or --load says another. The same
flags give the same bytes; at the site's rate, fewer --jobs are the first ones
of more.`,
		Example: `  trainyard trace generate --like philly --jobs 100000 > jobs.csv
  trainyard trace generate --like venus --jobs 5000 --load 0.9 --cluster 16x8`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := f.generator(cmd)
			if err != nil {
				return err
			}
			err = g.WriteCSV(untilDone{cmd.Context(), cmd.OutOrStdout()})
			if errors.Is(err, context.Canceled) {
				return &term.CodedError{Code: term.ExitInterrupted,
					Err: errors.New("interrupted; the trace is not whole")}
			}
			if err == nil && g.Load > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "trainyard: these %s offer %.3g times what the %s can do, --load asks "+
					"for %.3g: the more jobs, the closer\n", term.Counted(g.Jobs, "job"), g.OfferedLoad(),
					term.Counted(g.GPUs, "GPU"), g.Load)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.like, "like", "", "`SITE` whose jobs are resembled: "+strings.Join(trace.Sites(),
		", ")+"; required")
	fs.IntVar(&f.jobs, "jobs", 0, "number `N` of jobs; required")
	fs.Uint64Var(&f.seed, "seed", 1, "seed `N` of all that is drawn")
	fs.Float64Var(&f.days, "days", 0, "have the jobs come over about `D` days instead of at the site's rate")
	fs.Float64Var(&f.load, "load", 0, "have them offer `X` times the work that --cluster can do instead; wider jobs "+
		"are left out")
	fs.StringVar(&f.cluster, "cluster", "", "cluster `SPEC` that --load refers to: 15x4 (nodes x GPUs), or a YAML file")
	term.CompleteFlag(cmd, "like", term.OneOf(trace.Sites))
	return cmd
}

// generator returns what the flags ask for.
func (f *generateFlags) generator(cmd *cobra.Command) (trace.Generator, error) {
	var g trace.Generator
	given := cmd.Flags().Changed
	if err := f.complain(given); err != nil {
		return g, err
	}
	g, err := trace.Like(f.like)
	if err != nil {
		return g, term.Usagef("generate: %w", err)
	}
	g.Seed, g.Jobs = f.seed, f.jobs
	if given("days") {
		g.Span = time.Duration(f.days * float64(24*time.Hour))
	}
	if given("load") {
		c, err := simulate.ReadCluster(f.cluster)
		if err != nil {
			return g, err
		}
		g.Load, g.GPUs = f.load, c.GPUs()
		g.Mix = slices.DeleteFunc(g.Mix, func(w trace.Width) bool { return w.GPUs > g.GPUs })
	}
	if err := g.Validate(); err != nil {
		return g, term.Usagef("generate: %w", err)
	}
	return g, nil
}

// complain returns what is wrong with the flags together.
func (f *generateFlags) complain(given func(flag string) bool) error {
	var missing []string
	if f.like == "" {
		missing = append(missing, "--like SITE")
	}
	if !given("jobs") {
		missing = append(missing, "--jobs N")
	}
	switch {
	case len(missing) > 0:
		return term.Usagef("generate: missing %s; see `trainyard trace generate --help`", strings.Join(missing, ", "))
	case given("days") && given("load"):
		return term.Usagef("generate: --days and --load both set the rate, want one of them")
	case given("load") != given("cluster"):
		return term.Usagef("generate: --load X and --cluster SPEC go together, want both or none")
	case given("load") && !(f.load > 0 && f.load <= 1e6):
		return term.Usagef("generate: --load %v, want a number > 0, at most 1e6, such as 0.9", f.load)
	case given("days") && !(f.days >= 0.001 && f.days <= 36525):
		return term.Usagef("generate: --days %v, want from 0.001 to 36525", f.days)
	}
	return nil
}

// untilDone is a writer that fails once a context is done.
type untilDone struct {
	context.Context
	io.Writer
}

// Write is that of the writer; once the context is done it writes nothing and returns why.
func (u untilDone) Write(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.Writer.Write(p)
}
