package simulate

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/report"
)

// report returns what a report shows of the comparison.
func (c *comparison) report(cmd *cobra.Command) *report.Report {
	r := &report.Report{Command: term.CommandOf(cmd), Facts: []report.Fact{
		{Name: "trace", Text: filepath.Base(c.shared.Trace.Path) + ": " + c.submitted()},
		{Name: "cluster", Text: filepath.Base(c.size())},
		{Name: "restart", Text: c.restart()},
	}}
	if c.shared.Preset != "" {
		r.Facts = append(r.Facts, report.Fact{Name: "preset", Text: c.presetLine()})
	}
	r.Notes = c.notes()
	for i := range c.runs {
		run := &c.runs[i]
		s := report.System{Name: run.request.System, Settings: term.WithoutFolders(run.request.Settings),
			Engine: run.outcome.Engine, Result: run.outcome.Result, Jobs: run.outcome.PerJob,
			Timeline: run.request.Timeline}
		if run.hash != nil && !run.replica() {
			s.LogHash = run.hash.Sum()
		}
		r.Systems = append(r.Systems, s)
	}
	return r
}
