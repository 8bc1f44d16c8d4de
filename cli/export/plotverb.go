package export

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/report/plot"
)

// plotFlags are the flags of plot as given.
type plotFlags struct {
	out   string
	width string
	style string
	by    string
	title string
	at    time.Duration

	options plot.Options
}

// frontierKind is the kind that shows plans.
const frontierKind = "frontier"

// kindNames are those of all kinds.
func kindNames() (names []string) {
	for _, k := range plot.Kinds {
		names = append(names, k.Name)
	}
	return append(names, frontierKind, calibrationKind)
}

func styleNames() (names []string) {
	for _, s := range plot.Styles {
		names = append(names, string(s))
	}
	return names
}

func newPlot() *cobra.Command {
	var f plotFlags
	long := "Draws a picture, without a browser, of logs of --events-out or of documents of\n--json.\n\n"
	for _, k := range plot.Kinds {
		long += fmt.Sprintf("%-9s %s\n", k.Name, strings.ReplaceAll(k.Says, "\n", " "))
	}
	long += frontierKind + `  what each budget buys: documents of plan --json
` + calibrationKind + `
          how often forecasts came true: a document of GET /v1/calibration

The first five want logs: gantt and heat one, the others one for each system.
compare takes logs, and documents of simulate --json. The name of the file says
what is written: .svg, in which text stays text, or .png. The same inputs give
the same bytes.`
	cmd := &cobra.Command{
		Use:   "plot KIND INPUT... -o FILE.svg|.png",
		Short: "Draw a picture of logs, for papers and pages",
		Long:  long,
		Example: `  trainyard plot gantt log.jsonl -o gantt.svg --by user
  trainyard plot gantt log.jsonl --at 2h -o forecast.svg
  trainyard plot compare log.fifo.jsonl log.srtf.jsonl -o compare.png
  trainyard plot cdf log.*.jsonl -o cdf.svg --width 84mm --style paper`,
		Args: cobra.ArbitraryArgs,
		RunE: f.plot,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.out, "out", "o", "", "`FILE` to write, .svg or .png")
	fs.StringVar(&f.width, "width", "", "`LENGTH` in mm, cm, in, pt or px (default: 840px; 84mm on paper)")
	fs.StringVar(&f.style, "style", string(plot.Screen),
		"`NAME`: paper; screen, light or dark as the reader's is; dark")
	fs.StringVar(&f.by, "by", "", "of gantt: colour bars by `GROUP`, model, user, class or width (default: the first "+
		"of which there are several)")
	fs.StringVar(&f.title, "title", "", "`TEXT` above the picture")
	fs.DurationVar(&f.at, "at", 0, "of gantt: show the past up to this `TIME` after the log's origin, and what would "+
		"then be expected")
	term.CompleteFlag(cmd, "style", term.ListOf(styleNames))
	term.CompleteFlag(cmd, "by", term.ListOf(func() []string { return plot.Groups }))
	return cmd
}

// check names the first thing that is wrong with what was given.
func (f *plotFlags) check(cmd *cobra.Command, args []string) error {
	kinds := strings.Join(kindNames(), ", ")
	switch {
	case len(args) == 0:
		return term.Usagef("no argument given, want a kind of picture, %s, and what to draw it of", kinds)
	case !slices.Contains(kindNames(), args[0]):
		return term.Usagef("kind %q, want %s", args[0], kinds)
	case len(args) == 1:
		return term.Usagef("%s: no input given, want %s", args[0], wanted(args[0]))
	case len(args)-1 > most(args[0]):
		return term.Usagef("%s of %d inputs, want at most %d", args[0], len(args)-1, most(args[0]))
	}
	for _, in := range args[1:] {
		if term.SamePath(f.out, in) {
			return term.Usagef("-o %s: that is an input, want another file to write", f.out)
		}
	}
	return f.checkFlags(cmd, args[0])
}

// checkFlags names the first flag that is wrong for a kind.
func (f *plotFlags) checkFlags(cmd *cobra.Command, kind string) (err error) {
	switch at := cmd.Flags().Changed("at"); {
	case f.out == "":
		return term.Usagef("-o FILE is missing, want a name that ends in .svg or .png")
	case !slices.Contains([]string{".svg", ".png"}, strings.ToLower(filepath.Ext(f.out))):
		return term.Usagef("-o %q: want a name that ends in .svg or .png", f.out)
	case !slices.Contains(styleNames(), f.style):
		return term.Usagef("--style %q, want %s", f.style, strings.Join(styleNames(), ", "))
	case f.by != "" && !slices.Contains(plot.Groups, f.by):
		return term.Usagef("--by %q, want %s", f.by, strings.Join(plot.Groups, ", "))
	case f.by != "" && kind != "gantt":
		return term.Usagef("--by is of gantt, not of %s", kind)
	case at && kind != "gantt":
		return term.Usagef("--at is of gantt, not of %s", kind)
	case at && f.at <= 0:
		return term.Usagef("--at %v, want a time above 0", f.at)
	}
	f.options = plot.Options{Style: plot.Style(f.style), By: f.by, Title: f.title}
	if f.width != "" {
		if f.options.Width, err = plot.LengthOf(f.width); err != nil {
			return term.Usagef("--width %q, %w", f.width, err)
		}
	}
	return nil
}

// wanted says which inputs a kind takes.
func wanted(kind string) string {
	switch kind {
	case frontierKind:
		return "documents of plan --json"
	case calibrationKind:
		return "a document of GET /v1/calibration"
	case "compare":
		return "logs of --events-out, or documents of simulate --json"
	case "gantt", "heat":
		return "a log of --events-out"
	}
	return "logs of --events-out"
}

// most returns how many inputs a kind takes.
func most(kind string) int {
	if k, ok := plot.KindOf(kind); ok {
		return k.Most
	}
	if kind == calibrationKind {
		return 1
	}
	return plot.MostPlans
}

func (f *plotFlags) plot(cmd *cobra.Command, args []string) error {
	if err := f.check(cmd, args); err != nil {
		return err
	}
	out, err := term.CreateOut(f.out)
	if err != nil {
		return err
	}
	defer out.Discard()
	p, err := f.picture(cmd, args[0], args[1:])
	if err != nil {
		return err
	}
	if strings.EqualFold(filepath.Ext(f.out), ".png") {
		err = p.PNG(out)
	} else {
		err = p.SVG(out)
	}
	if err != nil {
		return err
	}
	return out.Commit()
}

// picture reads the inputs, and draws.
func (f *plotFlags) picture(cmd *cobra.Command, kind string, inputs []string) (*plot.Picture, error) {
	if kind == frontierKind {
		plans, err := readPlans(inputs)
		if err != nil {
			return nil, err
		}
		p, err := plot.DrawFrontier(plans, f.options)
		return p, unfit(err)
	}
	if kind == calibrationKind {
		c, err := readCalibration(inputs[0])
		if err != nil {
			return nil, err
		}
		p, err := plot.DrawCalibration(c, f.options)
		return p, unfit(err)
	}
	var runs []plot.Run
	for _, path := range inputs {
		more, err := readRuns(cmd.Context(), path, kind, f.at)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	k, _ := plot.KindOf(kind)
	if len(runs) > k.Most {
		return nil, term.Usagef("%s of %d systems, want at most %d", kind, len(runs), k.Most)
	}
	apart(runs, inputs)
	p, err := plot.Draw(k, runs, f.options)
	return p, unfit(err)
}

// unfit is an error about inputs of which a picture cannot be made.
func unfit(err error) error {
	if err == nil {
		return nil
	}
	return term.Malformed(err)
}

// apart names runs of the same name by their files, where each is of one.
func apart(runs []plot.Run, inputs []string) {
	seen := map[string]int{}
	for i := range runs {
		seen[runs[i].Name]++
	}
	if len(seen) == len(runs) || len(runs) != len(inputs) {
		return
	}
	for i := range runs {
		if seen[runs[i].Name] > 1 {
			runs[i].Name = strings.TrimSuffix(filepath.Base(inputs[i]), filepath.Ext(inputs[i]))
		}
	}
}

// errNoLog is about a document where a log is wanted.
var errNoLog = errors.New("a document, want a log of --events-out")
