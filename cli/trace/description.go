package trace

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/inputs"
	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/cluster"
	"github.com/trainyard/trainyard/simulate"
	"github.com/trainyard/trainyard/trace"
)

func newTraceDescribe() *cobra.Command {
	var f traceFlags
	spec, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "describe {FILE | -}",
		Short: "Say what a trace asks for",
		Long: `Says how many jobs a trace has, how wide and long they are, when they arrive,
how they ended, whose they are, what load they offer to a cluster, by GPU type
where jobs name one, and what is known and doubtful about the data. FILE may
be - for standard input.

` + inputs.FormatsHelp(),
		Args: term.Exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := describe(cmd.InOrStdin(), &f, args[0], spec)
			if err != nil {
				return err
			}
			if asJSON {
				return term.WriteJSON(cmd.OutOrStdout(), d.document())
			}
			return term.WriteText(cmd.OutOrStdout(), d.text(term.WidthOf(cmd.OutOrStdout())))
		},
	}
	f.define(cmd)
	cmd.Flags().StringVar(&spec, "cluster", "", "also say the load offered to cluster `SPEC`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document")
	return cmd
}

// description is a trace, what it asks for, and perhaps of which cluster.
type description struct {
	trace   *trace.Trace
	sum     trace.Summary
	doubts  []string
	cluster *cluster.Cluster // nil = not given
}

func describe(in io.Reader, f *traceFlags, path, spec string) (*description, error) {
	d := &description{}
	var err error
	if spec != "" {
		if d.cluster, err = simulate.ReadCluster(spec); err != nil {
			return nil, err
		}
	}
	err = f.with(path, func(o trace.Options) (err error) {
		o.Roughly = true // widths and arrivals can be given without durations
		if path == "-" {
			d.trace, err = trace.Parse(in, "standard input", o)
			return err
		}
		d.trace, err = trace.Read(path, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.sum = trace.Describe(d.trace)
	d.doubts = d.trace.Doubts(&d.sum)
	return d, nil
}

func (d *description) text(width int) string {
	var b strings.Builder
	line := func(what, text string) { b.WriteString(term.Entry(what, text, width)) }
	line("trace", fmt.Sprintf("%s, format %s", d.trace.Path, d.trace.Format))
	when := "at once"
	if d.sum.Span > 0 {
		when = "in " + term.ShortTime(d.sum.Span.Seconds())
	}
	line("jobs", fmt.Sprintf("%d submitted %s", d.sum.Jobs, when))
	line("work", d.work())
	if d.cluster != nil {
		line("load", d.load())
		for _, l := range d.loads() {
			line("", l.text())
		}
	}
	if d.trace.Source != "" {
		line("source", d.trace.Source)
	}
	line("times", d.times())
	for _, w := range slices.Concat(d.trace.Warnings, d.doubts) {
		line("warning", w)
	}
	b.WriteString("\n" + d.widths(width) + "\n" + d.durations(width))
	if plots := d.arrivals(); plots != "" {
		b.WriteString("\n" + plots)
	}
	if ends := shareTable("end state", d.sum.States, width); ends != "" {
		b.WriteString("\n" + ends)
	}
	if types := shareTable("GPU type", d.sum.Types, width); types != "" {
		b.WriteString("\n" + types)
	}
	if names := d.names(width); names != "" {
		b.WriteString("\n" + names)
	}
	return b.String()
}

// names lists the models, classes, users and groups that most jobs have.
func (d *description) names(width int) string {
	text := ""
	for _, n := range []struct {
		what   string
		counts []trace.Count
	}{{"models", d.sum.Models}, {"classes", d.sum.Classes}, {"users", d.sum.Users}, {"groups", d.sum.Groups}} {
		if len(n.counts) > 0 {
			text += term.Entry(n.what, topOf(n.counts), width)
		}
	}
	return text
}

func (d *description) work() string {
	text := fmt.Sprintf("%.4g GPU hours, %.3g GPUs per job", float64(d.sum.GPUTime)/3600, d.sum.MeanGPUs)
	if demand := d.sum.MeanDemand(); demand > 0 {
		text += fmt.Sprintf(", %.4g GPUs busy if all ran at once", demand)
	}
	return text
}

func (d *description) load() string {
	n := d.cluster.GPUs()
	wide := 0
	for _, w := range d.sum.Widths {
		if w.GPUs > n {
			wide += w.Jobs
		}
	}
	text := fmt.Sprintf("%.3g times what the %d GPUs of %s can do", d.sum.OfferedLoad(n), n, d.cluster.Name)
	switch {
	case d.sum.Span == 0:
		text = "undefined: all jobs are submitted at once"
	case d.sum.GPUTime == 0:
		text = "unknown: no job has a duration"
	}
	if wide > 0 {
		text += fmt.Sprintf("; %s wider than the cluster", term.Counted(wide, "job"))
	}
	return text
}

// times says from when and on which clock times are reported.
func (d *description) times() string {
	if t := d.trace.Origin; !t.IsZero() && !strings.Contains(d.trace.Zone, t.Format("2006-01-02T15:04:05")) {
		return d.trace.Zone + "; time 0 is " + t.Format("2006-01-02 15:04:05")
	}
	return d.trace.Zone
}

// widths returns the mix of widths, at most twenty of them.
func (d *description) widths(width int) string {
	const most = 20
	t := &term.Table{}
	t.Add("width", "jobs", "of jobs", "of GPU time")
	list := d.sum.Widths
	for i, w := range list {
		if i == most && len(list) > most+1 {
			var rest trace.WidthShare
			for _, w := range list[i:] {
				rest.Jobs += w.Jobs
				rest.JobShare += w.JobShare
				rest.TimeShare += w.TimeShare
			}
			t.Add("wider", strconv.Itoa(rest.Jobs), share(rest.JobShare), share(rest.TimeShare))
			break
		}
		t.Add(term.Counted(w.GPUs, "GPU"), strconv.Itoa(w.Jobs), share(w.JobShare), share(w.TimeShare))
	}
	return t.Text(width)
}

func share(x float64) string { return strconv.FormatFloat(100*x, 'f', 1, 64) + "%" }

func (d *description) durations(width int) string {
	q := &d.sum.Duration
	t := &term.Table{}
	t.Add("", "min", "p10", "median", "p90", "p95", "p99", "max", "mean")
	row := []string{"duration"}
	for _, x := range []time.Duration{q.Min, q.P10, q.P50, q.P90, q.P95, q.P99, q.Max, q.Mean} {
		row = append(row, term.ShortTime(x.Seconds()))
	}
	t.Add(row...)
	return t.Text(width)
}

// topOf lists the names that most jobs have.
func topOf(counts []trace.Count) string {
	const most = 10
	var parts []string
	for i, c := range counts {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(counts)-i))
			break
		}
		name := c.Name
		if name == "" {
			name = "(none)"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, c.Jobs))
	}
	return strings.Join(parts, ", ")
}
