package export

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/eventlog"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/report/export"
	"github.com/trainyard/trainyard/report/recorded"
)

// exportFlags are the flags of export as given.
type exportFlags struct {
	target client.Target
	out    string
	table  string
	jobs   bool
	board  string
}

var formats = []string{"perfetto", "evalys", "csv", grafana}

// grafana is the format that needs no log.
const grafana = "grafana"

// Verbs returns the verbs that write a log in the forms of other tools, and draw pictures.
func Verbs() []*cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export perfetto|evalys|csv|grafana [LOG.jsonl]",
		Short: "Write a log in the form of another tool",
		Long: `Writes the run in a log, or that of a host so far where no log is named.

perfetto  a trace for ui.perfetto.dev: a track for each GPU, a slice for each
          attempt and what it did, counters, flows between attempts of a job
evalys    a JobSet in CSV: a row for each attempt, or with --jobs for each job
csv       one table: jobs, attempts or series
grafana   a dashboard of the metrics of a manager (--dashboard machine) or of
          the controller of a cluster (cluster), to import; it needs no log`,
		Example: `  trainyard export perfetto log.jsonl -o run.pftrace
  trainyard export csv --table attempts --context lab -o attempts.csv
  trainyard export grafana --dashboard cluster -o cluster.json`,
		Args: cobra.ArbitraryArgs,
		RunE: f.export,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.target.AddFlags(cmd)
	fs.StringVarP(&f.out, "out", "o", "", "`FILE` to write (default, and -: the standard output, of text)")
	fs.StringVar(&f.table, "table", "jobs", "of csv: `NAME` of the table, jobs, attempts or series")
	fs.BoolVar(&f.jobs, "jobs", false, "of evalys: a row for each job")
	fs.StringVar(&f.board, "dashboard", "machine", "of grafana: `NAME` of the dashboard, machine or cluster")
	term.CompleteFlag(cmd, "dashboard", term.ListOf(func() []string { return export.Dashboards }))
	term.CompleteFlag(cmd, "table", term.ListOf(func() []string { return export.Tables }))
	return []*cobra.Command{cmd, newPlot()}
}

// check names the first thing that is wrong with what was given.
func (f *exportFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || len(args) > 2:
		return term.Usagef("%s given, want a format, %s, and at most one log", term.Counted(len(args), "argument"),
			strings.Join(formats, ", "))
	case !slices.Contains(formats, args[0]):
		return term.Usagef("format %q, want %s", args[0], strings.Join(formats, ", "))
	case (f.out == "" || f.out == "-") && args[0] == "perfetto":
		return term.Usagef("perfetto is no text: give -o FILE; /dev/stdout is the standard output")
	case !slices.Contains(export.Tables, f.table):
		return term.Usagef("--table %q, want %s", f.table, strings.Join(export.Tables, ", "))
	case cmd.Flags().Changed("table") && args[0] != "csv":
		return term.Usagef("--table is of csv, not of %s", args[0])
	case f.jobs && args[0] != "evalys":
		return term.Usagef("--jobs is of evalys, not of %s", args[0])
	case len(args) > 1 && (f.target.State != "" || f.target.Context != ""):
		return term.Usagef("%s and a host are both given, want one", args[1])
	}
	return f.checkBoard(cmd, args)
}

// checkBoard names what is wrong for a dashboard.
func (f *exportFlags) checkBoard(cmd *cobra.Command, args []string) error {
	switch {
	case !slices.Contains(export.Dashboards, f.board):
		return term.Usagef("--dashboard %q, want %s", f.board, strings.Join(export.Dashboards, ", "))
	case cmd.Flags().Changed("dashboard") && args[0] != grafana:
		return term.Usagef("--dashboard is of grafana, not of %s", args[0])
	case args[0] == grafana && (len(args) > 1 || f.target.State != "" || f.target.Context != ""):
		return term.Usagef("grafana: a log or a host is given, want none: a dashboard is of metrics")
	}
	return nil
}

func (f *exportFlags) export(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	if f.out == "" || f.out == "-" {
		return f.write(cmd, args, cmd.OutOrStdout())
	}
	out, err := term.CreateOut(f.out)
	if err != nil {
		return err
	}
	defer out.Discard()
	if err := f.write(cmd, args, out); err != nil {
		return err
	}
	return out.Commit()
}

// write writes the run in the form that is wanted.
func (f *exportFlags) write(cmd *cobra.Command, args []string, out io.Writer) error {
	if args[0] == grafana {
		return export.Grafana(out, f.board)
	}
	sys, err := f.read(cmd, args)
	if err != nil {
		return err
	}
	switch args[0] {
	case "perfetto":
		return export.Perfetto(out, sys.Timeline)
	case "evalys":
		return export.Evalys(out, sys.Name, sys.Timeline, sys.Jobs, f.jobs)
	default:
		return export.CSV(out, f.table, sys.Timeline, sys.Jobs)
	}
}

// read reads the run in the log that is named, or of the host.
func (f *exportFlags) read(cmd *cobra.Command, args []string) (sys report.System, err error) {
	if len(args) > 1 {
		file, failed := os.Open(args[1])
		if failed != nil {
			return sys, failed
		}
		defer file.Close()
		return runIn(file, args[1])
	}
	err = f.target.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) (err error) {
		sys, err = streamed(cmd.Context(), c)
		return err
	})(cmd, nil)
	return sys, err
}

// streamed reads the log of a host as it comes.
func streamed(ctx context.Context, c *api.Client) (report.System, error) {
	from, to := io.Pipe()
	go func() { _ = to.CloseWithError(c.WriteLog(ctx, to)) }()
	defer from.Close()
	return runIn(from, "the log of the host")
}

// runIn reads the one run in a log.
func runIn(log io.Reader, name string) (report.System, error) {
	r, err := eventlog.NewReader(log, name)
	if err != nil {
		return report.System{}, term.Malformed(err)
	}
	sys, short, err := recorded.Run(r)
	if err = cmp.Or(err, short); err != nil {
		return sys, term.Malformed(err)
	}
	return sys, nil
}
