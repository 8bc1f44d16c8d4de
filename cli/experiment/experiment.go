package experiment

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/report"
)

func experimentNames() []string {
	var names []string
	for i := range Experiments {
		names = append(names, Experiments[i].Name)
	}
	return names
}

// dataVar names the folder of public traces where --data does not.
const dataVar = "TRAINYARD_DATA"

func newExperiment() *cobra.Command {
	var o Options
	var shown term.ReportFlags
	cmd := &cobra.Command{
		Use:               "experiment [NAME]",
		Short:             "Run a published comparison, ours next to it; without a name, list",
		Args:              term.Exactly("[NAME]"),
		ValidArgsFunction: term.FirstArg(experimentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				if shown.Path != "" {
					return term.Usagef("--report: want the name of an experiment, without which " +
						"they are listed")
				}
				if o.JSON {
					return term.WriteJSON(out, experimentsDocOf(Experiments))
				}
				return term.WriteText(out, experimentList(Experiments, term.WidthOf(out)))
			}
			if o.Seeds < 1 && cmd.Flags().Changed("seeds") {
				return term.Usagef("--seeds %d, want a number >= 1", o.Seeds)
			}
			e, err := experimentNamed(args[0])
			if err != nil {
				return err
			}
			if e.Name != "grounds" && o.Grounds != (groundsOptions{}) {
				return term.Usagef("experiment %s: --ground, --check and --constants are for grounds alone", e.Name)
			}
			o.Progress = cmd.ErrOrStderr()
			return e.reported(cmd, &o, &shown)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Data, "data", os.Getenv(dataVar),
		"`FOLDER` of public traces (default: $"+dataVar+"; without, what needs none is run)")
	fs.IntVar(&o.Seeds, "seeds", 0, "run seeds 1 to `N` (default: the experiment's own)")
	fs.StringVar(&o.Grounds.Ground, "ground", "", "grounds: play the one of this `NAME` alone")
	fs.BoolVar(&o.Grounds.Check, "check", false, "grounds: the half that was not used for choosing constants")
	fs.StringVar(&o.Grounds.Constants, "constants", "", "grounds: `FILE` (YAML) of constants to try instead")
	fs.BoolVar(&o.JSON, "json", false, "one JSON document")
	shown.Define(fs)
	fs.Lookup("data").DefValue = "" // the help text says it
	helpOfOne(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); len(args) > 0 { // what is unknown comes before its flags
			if _, unknown := experimentNamed(args[0]); unknown != nil {
				return unknown
			}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// reported runs the experiment, and writes the report that is asked for once all went well.
func (e *Experiment) reported(cmd *cobra.Command, o *Options, shown *term.ReportFlags) error {
	if err := shown.CheckInput(term.PathUse{What: "file of constants", Path: o.Grounds.Constants}); err != nil {
		return err
	}
	file, err := shown.Create()
	if err != nil {
		return err
	}
	defer file.Discard()
	if file != nil {
		o.Report = &report.Report{Command: term.CommandOf(cmd), Facts: []report.Fact{{Name: "experiment", Text: e.Name},
			{Name: "about", Text: e.Line}}}
	}
	var out bytes.Buffer
	if err := e.Run(cmd.Context(), &out, *o); err != nil {
		return err
	}
	if err := file.Fill(o.Report, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	return term.WriteText(cmd.OutOrStdout(), out.String())
}

// helpOfOne has the help of an experiment that is named be its own, with the flags that it takes.
func helpOfOne(cmd *cobra.Command) {
	all := cmd.HelpFunc()
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		e, err := experimentNamed(cmd.Flags().Arg(0))
		if err != nil {
			all(cmd, args)
			return
		}
		own := *cmd
		own.Use, own.Short, own.Long = "experiment "+e.Name, "", e.Line+"."
		if e.Long != "" {
			own.Long += "\n\n" + e.Long
		}
		for _, name := range groundsFlags {
			own.Flags().Lookup(name).Hidden = e.Name != "grounds"
		}
		all(&own, args)
	})
}

// groundsFlags are the flags of grounds alone.
var groundsFlags = []string{"ground", "check", "constants"}

func experimentNamed(name string) (*Experiment, error) {
	for i := range Experiments {
		if e := &Experiments[i]; e.Name == name {
			return e, nil
		}
	}
	names := experimentNames()
	return nil, term.Usagef("experiment %q is not known%s; want one of %s", name, suggest.Hint(name, names),
		strings.Join(names, ", "))
}

func experimentList(list []Experiment, width int) string {
	var b strings.Builder
	longest := 0
	for i := range list {
		longest = max(longest, len(list[i].Name))
	}
	for i := range list {
		fmt.Fprintf(&b, "%-*s  %s\n", longest, list[i].Name, term.Wrap(list[i].Line, width, longest+2))
	}
	return b.String()
}

// experimentsDoc is the document of experiment --json without a name.
type experimentsDoc struct {
	Schema      string          `json:"schema"`
	Experiments []experimentDoc `json:"experiments"`
}

type experimentDoc struct {
	Name string `json:"name"`
	Line string `json:"line"`
}

func experimentsDocOf(list []Experiment) experimentsDoc {
	doc := experimentsDoc{Schema: "trainyard.experiments/v1", Experiments: []experimentDoc{}}
	for i := range list {
		doc.Experiments = append(doc.Experiments, experimentDoc{list[i].Name, list[i].Line})
	}
	return doc
}

// Verbs returns the verb about published comparisons.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newExperiment(),
	}
}
