package plan

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/cli/term"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/model/price"
	"github.com/trainyard/trainyard/report"
	"github.com/trainyard/trainyard/simulate"
)

// planFlags are the flags of plan as given.
type planFlags struct {
	workload   string
	budget     string
	continuous bool
	method     string
	reserve    string
	rent       string
	verify     bool
	elastic    int // GPUs; 0 = not asked for
	json       bool
	trace      planTrace
	report     term.ReportFlags
}

// The methods of plan.
const (
	methodBOA   = "boa"
	methodExact = "boa-exact"
)

func planMethods() []string { return []string{methodExact, methodBOA} }

func newPlan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan --workload FILE --budget GPUS",
		Short: "Say how many GPUs jobs should get on a budget",
		Long: `Says how many GPUs the jobs of each class should get in each epoch, so that with
so many GPUs rented on average jobs take least time, and what any other budget
would give. Every job is taken to start at once and to keep its GPUs: sizes, and
when jobs arrive, then play no part beyond their averages.

Where the file names GPU types with prices, the budget is money per hour.

With --elastic nothing is rented: all jobs of a trace run at once, and for each
number of GPUs up to the one given it says what they do at best, and what one
GPU more would add.

boa-exact is the optimum; boa is the search of the BOA authors: phases merged at
random, widths rounded, less budget until it fits.`,
		Example: `  trainyard plan --workload classes.yaml --budget 48
  trainyard plan --workload classes.yaml --budget 48 --json`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.reported(cmd) },
	}
	f.define(cmd)
	term.CompleteFlag(cmd, "method", term.OneOf(planMethods))
	return cmd
}

// reported plans, and writes the report that is asked for once all went well.
func (f *planFlags) reported(cmd *cobra.Command) error {
	if err := f.report.CheckInput(term.PathUse{What: "workload", Path: f.workload},
		term.PathUse{What: "file of profiles", Path: f.trace.profiles}); err != nil {
		return err
	}
	file, err := f.report.Create()
	if err != nil {
		return err
	}
	defer file.Discard()
	if cmd.Flags().Changed("elastic") {
		return f.runElastic(cmd, file)
	}
	p, err := plan(f)
	if err != nil {
		return err
	}
	fmt.Fprint(cmd.ErrOrStderr(), p.workload.warn())
	if f.verify {
		if err := p.verify(cmd.Context()); err != nil {
			return err
		}
	}
	doc := p.document()
	shown := f.shown(cmd)
	shown.Plan = forReport(doc, p.workload.unit(), f.report.Anonymous)
	if err := file.Fill(shown, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), doc)
	}
	return term.WriteText(cmd.OutOrStdout(), p.text(term.WidthOf(cmd.OutOrStdout())))
}

// runElastic says what each GPU is worth.
func (f *planFlags) runElastic(cmd *cobra.Command, file *term.Report) error {
	p, err := planElastic(f)
	if err != nil {
		return err
	}
	shown, doc := f.shown(cmd), *p
	if doc.Workload = filepath.Base(doc.Workload); f.report.Anonymous {
		doc.Workload = ""
	}
	if shown.Tables, err = report.Figures(doc); err != nil {
		return err
	}
	if err := file.Fill(shown, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	if f.json {
		return term.WriteJSON(cmd.OutOrStdout(), p)
	}
	return term.WriteText(cmd.OutOrStdout(), p.text(term.WidthOf(cmd.OutOrStdout())))
}

// shown returns what any report of a plan states.
func (f *planFlags) shown(cmd *cobra.Command) *report.Report {
	return &report.Report{Command: term.CommandOf(cmd), Facts: []report.Fact{
		{Name: "plan", Text: "of widths"}, {Name: "trace", Text: filepath.Base(f.workload)}}}
}

func (f *planFlags) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.workload, "workload", "", "table of classes, YAML, see docs/guide/plans.md; with --profiles a "+
		"trace: `FILE`, required")
	fs.StringVar(&f.budget, "budget", "", "`GPUS` to rent on average, or money per hour where GPU types have "+
		"prices; required")
	fs.BoolVar(&f.continuous, "continuous", false, "let a job have a fraction of a GPU")
	fs.StringVar(&f.method, "method", methodExact, "how widths are found: `NAME` boa-exact or boa")
	fs.StringVar(&f.reserve, "reserve-price", "", "what a GPU costs per hour if `PRICE` is paid all the time: says "+
		"how many to reserve; with --rent-price")
	fs.StringVar(&f.rent, "rent-price", "", "what it costs per hour if `PRICE` is paid while it is held")
	fs.BoolVar(&f.verify, "verify", false, "simulate the plan on jobs that arrive at random")
	fs.StringVar(&f.trace.profiles, "profiles", "",
		"the workload is a trace; how fast its models train: `PATH` of a folder of profiles, or of tables")
	fs.StringVar(&f.trace.window, "window", "", "`SECONDS` in which the jobs of a trace arrive (default: up to the "+
		"last arrival)")
	fs.StringVar(&f.trace.restart, "restart-overhead", "",
		"of jobs of a trace: `SECONDS`, or MODEL=SECONDS,...,SECONDS (default 62)")
	fs.StringVar(&f.trace.widest, "max-gpus", "", "of jobs of a trace: `GPUS`, or MODEL=GPUS,...,GPUS (default: as "+
		"they ask)")
	fs.IntVar(&f.trace.perNode, "gpus-per-node", 0,
		"`GPUS` of a node, on as few of which as will do jobs of a trace run (default 4)")
	fs.IntVar(&f.elastic, "elastic", 0, "say what each GPU up to `GPUS` is worth to the jobs of a trace under "+
		"elastic scaling; with --profiles, without a budget")
	fs.BoolVar(&f.json, "json", false, "one JSON document instead of the table")
	f.report.Define(fs)
}

// planned is a plan, with what is around it.
type planned struct {
	workload   *workload
	method     string
	continuous bool
	budget     float64
	least      float64 // budget
	best       *outcome
	frontier   []*outcome         // by budget
	split      *reservation       // nil = not asked for
	verified   *simulate.Verified // nil = not asked for
}

// outcome is what comes of a budget.
type outcome struct {
	budget float64
	usage  float64 // of it
	jct    float64 // hours
	value  float64 // weight x hours; jct where all weights are 1
	price  float64 // see price.Plan
	priced bool    // the method knows a price
	rows   []widthRow
	plan   *price.Plan // nil with fractions of GPUs
}

// widthRow is how a share of the work of an epoch runs.
type widthRow struct {
	class  string
	epoch  int // from 1
	gpu    string
	gpus   float64
	share  float64
	capped bool // at max_gpus, and more would still help
}

// solver finds the outcome of any budget.
type solver struct {
	least, most float64 // budgets: that on which all work gets done, and beyond which nothing is gained
	at          func(budget float64) (*outcome, error)
}

// plan does what the flags say.
func plan(f *planFlags) (*planned, error) {
	budget, err := f.validate()
	if err != nil {
		return nil, err
	}
	w, err := f.read()
	if err != nil {
		return nil, err
	}
	p := &planned{workload: w, method: f.method, continuous: f.continuous, budget: budget}
	s, err := p.solver()
	if err != nil {
		return nil, err
	}
	p.least = s.least
	p.best, err = s.at(budget)
	if err != nil {
		return nil, p.refused(err)
	}
	p.frontier = s.frontier(budget)
	if f.reserve != "" {
		p.split, err = p.reservation(f)
	}
	return p, err
}

func (f *planFlags) validate() (budget float64, err error) {
	switch {
	case f.workload == "":
		return 0, term.Usagef("--workload not given, want a YAML file; see `trainyard plan --help`")
	case f.budget == "":
		return 0, term.Usagef("--budget not given, want the GPUs to rent on average; see `trainyard plan --help`")
	case f.method != methodExact && f.method != methodBOA:
		return 0, term.Usagef("--method %q%s, want boa-exact or boa", f.method, suggest.Hint(f.method, planMethods()))
	}
	if err := f.whole(); err != nil {
		return 0, err
	}
	switch {
	case (f.reserve == "") != (f.rent == ""):
		return 0, term.Usagef("--reserve-price and --rent-price go together, want both or neither")
	case f.trace.given() && f.trace.profiles == "":
		return 0, term.Usagef("--window, --restart-overhead, --max-gpus and --gpus-per-node are for a trace, which " +
			"needs --profiles")
	case f.trace.profiles == "" && strings.Contains(filepath.Base(f.workload), ".csv"):
		return 0, term.Usagef("--workload %s looks like a trace, which needs --profiles; want that, or a YAML table "+
			"of classes", f.workload)
	case f.trace.perNode < 0 || f.trace.perNode > maxWidth:
		return 0, term.Usagef("--gpus-per-node %d, want a number from 1 to %d", f.trace.perNode, maxWidth)
	}
	return positive("budget", f.budget)
}

// whole refuses --continuous with what needs whole GPUs.
func (f *planFlags) whole() error {
	switch {
	case !f.continuous:
		return nil
	case f.method == methodBOA:
		return term.Usagef("--continuous with --method boa, which rounds to whole GPUs; want one of them")
	case f.verify:
		return term.Usagef("--continuous with --verify: fractions of GPUs cannot be simulated; want one of them")
	case f.reserve != "":
		return term.Usagef("--continuous with --reserve-price: fractions of GPUs cannot be reserved; want one of them")
	}
	return nil
}

// read reads the workload: with profiles it is a trace.
func (f *planFlags) read() (*workload, error) {
	if f.trace.profiles != "" {
		return readTraceWorkload(f.workload, &f.trace)
	}
	return readWorkload(f.workload)
}

// positive reads a number above 0.
func positive(flag, text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x > 0 && x <= 1e9) {
		return 0, term.Usagef("--%s %q, want a number above 0, up to 1e9", flag, text)
	}
	return x, nil
}

// refused says why there is no plan.
func (p *planned) refused(err error) error {
	if least := (*price.InfeasibleError)(nil); errors.As(err, &least) {
		return term.Refusedf("--budget %g does not pay for the work of %s even at its cheapest, want at least %s %s",
			p.budget, p.workload.path, atLeast(least.Least), p.workload.unit())
	}
	if errors.Is(err, price.ErrNoDraw) {
		return term.Refusedf("--budget %g: method boa found no widths within it; %s would be enough for boa-exact, "+
			"want more or that",
			p.budget, atLeast(p.least))
	}
	return err
}

// atLeast prints a number to six digits, the last rounded up: what is printed must do.
func atLeast(x float64) string {
	if x <= 0 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-5)
	return strconv.FormatFloat(math.Ceil(x/unit-1e-6)*unit, 'g', 6, 64)
}

// solver returns how to find plans.
func (p *planned) solver() (*solver, error) {
	if p.continuous {
		return p.continuously()
	}
	classes := p.workload.classes()
	x, err := price.NewExact(classes)
	if err != nil {
		return nil, err
	}
	s := &solver{least: x.Frontier().Least(), most: x.Frontier().Most()}
	s.at = func(budget float64) (*outcome, error) {
		plan, err := x.At(budget)
		return p.workload.outcome(classes, budget, plan, err, true)
	}
	if p.method == methodBOA {
		g, err := price.NewGlue(classes, 0)
		if err != nil {
			return nil, err
		}
		s.at = func(budget float64) (*outcome, error) {
			plan, err := g.At(budget)
			return p.workload.outcome(classes, budget, plan, err, false)
		}
	}
	return s, nil
}

// outcome writes a plan by class and epoch.
func (w *workload) outcome(classes []price.Class, budget float64, plan *price.Plan, err error,
	priced bool) (*outcome, error) {
	if err != nil {
		return nil, err
	}
	o := &outcome{budget: budget, usage: plan.Usage, jct: plan.Delay, value: plan.Value, price: plan.Price,
		priced: priced, plan: plan}
	for i := range classes {
		c, m := &classes[i], &plan.Classes[i]
		for e, at := range m.Path {
			row := func(config int, share float64) {
				k := c.Configs[config]
				o.rows = append(o.rows, widthRow{c.Name, e + 1, w.name(k.Type), float64(k.GPUs), share,
					w.capped(i, e, k, plan.Price)})
			}
			if m.Other == nil || m.Other[e] == at {
				row(at, 1)
				continue
			}
			row(at, 1-m.Share)
			row(m.Other[e], m.Share)
		}
	}
	return o, nil
}

// capped reports whether a job of class i would have more GPUs if its formula were not cut off.
func (w *workload) capped(i, epoch int, k price.Config, mu float64) bool {
	c, kind := &w.kinds[i].epochs[epoch].on[k.Type], &w.kinds[i]
	if c.law == nil || k.GPUs < kind.most {
		return false
	}
	return mu == 0 || c.law.Width(kind.weight/(mu*w.types[k.Type].price)) > float64(kind.most)+1
}

// continuously returns how to find plans with fractions of GPUs.
func (p *planned) continuously() (*solver, error) {
	work, err := p.workload.smooth()
	if err != nil {
		return nil, err
	}
	s := &solver{most: math.Inf(1)}
	if least := (*price.InfeasibleError)(nil); errors.As(firstError(price.Continuous(work, 0)), &least) {
		s.least = least.Least
	}
	s.at = func(budget float64) (*outcome, error) {
		r, err := price.Continuous(work, budget)
		if err != nil {
			return nil, err
		}
		return p.workload.relaxed(budget, r), nil
	}
	return s, nil
}

// firstError drops what comes with an error.
func firstError(_ *price.Relaxed, err error) error { return err }

// relaxed writes a plan with fractions of GPUs by class and epoch.
func (w *workload) relaxed(budget float64, r *price.Relaxed) *outcome {
	rate := w.rate()
	o := &outcome{budget: budget, usage: r.Usage, jct: r.Delay / rate, value: r.Value / rate, price: r.Price,
		priced: true}
	u := 0
	for i := range w.kinds {
		for e := range w.kinds[i].epochs {
			for _, part := range r.Parts[u] {
				o.rows = append(o.rows, widthRow{w.kinds[i].name, e + 1, w.name(part.Type), part.GPUs, part.Share,
					false})
			}
			u++
		}
	}
	return o
}

// corners is the number of budgets at which the frontier is reported.
const corners = 21

// frontier returns the outcomes of budgets from the least to twice what was given, closer together where little is to
// be had.
func (s *solver) frontier(budget float64) []*outcome {
	top := min(2*budget, s.most)
	if top <= s.least {
		top = s.least
	}
	var list []*outcome
	for i := range corners {
		share := float64(i) / (corners - 1)
		o, err := s.at(s.least + share*share*(top-s.least))
		if err == nil && (len(list) == 0 || o.budget > list[len(list)-1].budget) {
			list = append(list, o)
		}
	}
	return list
}

// reservation is how the GPUs held are best paid.
type reservation struct {
	split      price.Split
	cost, rent float64 // per hour: of the split, and of renting all of them
}

// reservation splits what the plan holds.
func (p *planned) reservation(f *planFlags) (*reservation, error) {
	reserve, err := positive("reserve-price", f.reserve)
	if err != nil {
		return nil, err
	}
	rent, err := positive("rent-price", f.rent)
	if err != nil {
		return nil, err
	}
	if len(p.workload.types) > 1 {
		return nil, term.Usagef("--reserve-price: prices of one kind of GPU, but %s has %d; want a workload with one",
			p.workload.path, len(p.workload.types))
	}
	loads, held := p.best.plan.Loads(p.workload.classes(), 0), 0.0
	for _, l := range loads {
		held += float64(l.GPUs) * l.Jobs
	}
	holding, err := price.Holding(loads)
	if err != nil {
		return nil, err
	}
	split := price.Reserve(holding, reserve, rent)
	return &reservation{split, float64(split.Reserved)*reserve + split.Rented*rent, held * rent}, nil
}

// Verbs returns the verb about widths and budgets.
func Verbs() []*cobra.Command {
	return []*cobra.Command{
		newPlan(),
	}
}
