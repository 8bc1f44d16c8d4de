package past

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/report"
)

// report returns what a report shows of the comparison: the document, and the runs of which there are figures, what
// happened first. All runs have the jobs of the trace.
func (h *History) report(cmd *cobra.Command, rows []Row, doc whatifJSON, anonymous bool) *report.Report {
	doc.Rows, doc.Earlier = slices.Clone(doc.Rows), slices.Clone(doc.Earlier)
	for i := range doc.Rows {
		r := &doc.Rows[i]
		if r.Settings = term.WithoutFolders(r.Settings); anonymous { // they may name files
			r.Settings = map[string]string{}
		}
	}
	if anonymous {
		doc.Earlier = nil
	}
	shown := &report.Report{Command: term.CommandOf(cmd), WhatIf: doc, Facts: term.FactsOf(&h.Header),
		Unit: term.UnitOf(&h.Header),
		Notes: []string{"What happened has the jobs that ran. Simulations have the work that jobs turned out to do; " +
			"figures count the jobs that ended."}}
	for i := range rows {
		r := &rows[i]
		s := report.System{Name: r.System, Settings: term.WithoutFolders(maps.Clone(r.Settings)), Engine: "trainyard"}
		switch {
		case r.Err != nil:
			continue
		case r.Recorded:
			s.Name += ", happened"
			s.Result, s.Jobs, s.Timeline = h.result, h.Jobs, h.line
		default:
			s.Name += ", simulated"
			s.Result, s.Jobs, s.Timeline = r.outcome.Result, r.outcome.PerJob, r.line
		}
		shown.Systems = append(shown.Systems, s)
	}
	return shown
}
