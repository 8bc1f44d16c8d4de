package experiment

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/trainyard/trainyard/report"
)

// Experiment is one published figure or comparison, with ours next to it.
type Experiment struct {
	Name, Line string
	Long       string // for its own help, in addition to Line; "" = nothing
	Run        func(ctx context.Context, w io.Writer, o Options) error
}

// Options are what an experiment may be given. Zero values mean the experiment's own default.
type Options struct {
	Data  string // folder of public traces; "" = only what needs none
	Seeds int    // how many seeds, from 1 on
	JSON  bool   // one document instead of tables

	Grounds groundsOptions // of the experiment grounds alone

	Report *report.Report // takes the figures; nil: not asked for

	Progress io.Writer // hears how far an experiment of many minutes has come; nil: not reported
}

// Experiments lists all experiments.
var Experiments = []Experiment{
	{Name: "consolidation", Run: consolidation,
		Line: "Tiresias: what consolidating gangs always, by model profile or never saves and costs"},
	{Name: "boa", Run: boaExperiment,
		Line: "BOA: what a budget of GPUs buys against a reservation and equal widths, in the long run"},
	{Name: "eaco", Run: eacoExperiment,
		Line: "EaCO against fifo, fifo-packed and gandiva: energy with idle nodes awake and asleep"},
	{Name: "elastic", Run: elasticExperiment,
		Line: "Elastic scaling that chooses batch sizes, against fixed ones and others that resize; epochs count"},
	{Name: "grounds", Line: "worth against the best of each paper's systems on its own ground: matrix, verdicts, gate",
		Long: `Plays worth and the systems at home on seven grounds, paired by world, and
judges by a rule that was fixed before: worth wins if it is worse on no row and
better on five grounds. A ground is a paper's traces and cluster; those that
worth cannot be compared on are listed with the reason.

--seeds takes 2 or more: one world has no interval, so that its row has no
verdict. The half for choosing has seeds 1 to 5, that of --check up to 30.`,
		Run: groundsExperiment},
	{Name: "pal", Run: palExperiment,
		Line: "PAL and PM-First against packed placement: as published, with scores that last, where locality matters"},
	{Name: "sizes", Run: sizesExperiment,
		Line: "Sizes of jobs learned by class: likelihood and calibration before they run, by trace"},
	{Name: "unsaved", Run: unsavedExperiment,
		Line: "Jobs that never save under the five systems: stopped for others, or left alone"},
	{Name: "stragglers", Run: stragglers,
		Line: "GPUs that are slow for a while: found by progress of jobs, against an oracle and no one"},
}

// show writes what an experiment found: its document, or that for people, which text writes.
func (o *Options) show(w io.Writer, doc any, text func(io.Writer) error) error {
	var printed bytes.Buffer
	if !o.JSON || o.Report != nil {
		if err := text(&printed); err != nil {
			return err
		}
	}
	if err := o.keep(doc, printed.String()); err != nil {
		return err
	}
	if !o.JSON {
		_, err := w.Write(printed.Bytes())
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// keep has the report show a document, and the same for people.
func (o *Options) keep(doc any, printed string) (err error) {
	if o.Report != nil {
		o.Report.Printed = printed
		o.Report.Tables, err = report.Figures(doc)
	}
	return err
}
