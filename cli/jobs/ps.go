package jobs

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// psFlags are the flags of ps as given.
type psFlags struct {
	to     client.Target
	states []string
	former []string // of --job-state
	user   string
	limit  int
	all    bool
	output string
	json   bool
	watch  bool
	tasks  bool
}

func newPs() *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:     "ps",
		Aliases: []string{"queue", "squeue"}, SuggestFor: []string{"ls", "list", "status", "jobs"},
		Short: "List jobs: where they run, why they wait",
		Long: `Lists the jobs of a manager by number, those that are done only with --all or a
--status that says so. Times are how long jobs have waited and run. When a
job that waits is expected to start is said as by why: the same at the same
moment.
With more than 200 jobs that are not done, or with --watch, it is left to why.`,
		Example: `  trainyard ps
  trainyard ps --all -o csv > jobs.csv`,
		Args: term.Exactly(),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := f.writer(cmd)
			if err != nil {
				return err
			}
			return f.to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
				return f.ps(cmd, c,
					write)
			})(cmd, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.BoolVarP(&f.all, "all", "a", false, "those that are done as well")
	fs.StringSliceVar(&f.states, "status", nil, "only jobs with one of `STATES`: held, waiting, starting, running, "+
		"stopping,\ndone, or how those ended: finished, failed, cancelled, rejected")
	fs.StringSliceVar(&f.former, "job-state", nil, "the same as --status: `STATES`")
	fs.StringVarP(&f.user, "user", "u", "", "only jobs of `USER`")
	fs.IntVarP(&f.limit, "limit", "n", 0, "only the latest `N` (default: all)")
	fs.BoolVar(&f.tasks, "tasks", false, "a row for each task of an array (default: one for all of them)")
	fs.StringVarP(&f.output, "output", "o", "", "`FORMAT`: wide, name, json, jsonl, yaml or csv (default: a table)")
	fs.BoolVar(&f.json, "json", false, "the same as -o json")
	fs.BoolVarP(&f.watch, "watch", "w", false, "once again at every change, until interrupted")
	term.CompleteFlag(cmd, "output", term.OneOf(func() []string { return psFormats }))
	for _, flag := range []string{"status", "job-state"} {
		term.CompleteFlag(cmd, flag, term.ListOf(psStates))
	}
	return cmd
}

// psStates are the states that jobs may be listed by.
func psStates() []string { return slices.Concat(unfinished, []string{"done"}, outcomes) }

var psFormats = []string{"wide", "name", "json", "jsonl", "yaml", "csv"}

// writer returns what writes jobs in the format that was asked for. A list that is watched as JSON is one document a
// line.
func (f *psFlags) writer(cmd *cobra.Command) (func(io.Writer, *api.Jobs) error, error) {
	if f.json {
		f.output = "json"
	}
	for flag, list := range map[string][]string{"status": f.states, "job-state": f.former} {
		for _, s := range list {
			if !slices.Contains(psStates(), s) {
				return nil, term.Usagef("--%s %s, want some of %s", flag, term.ShellWord(s),
					strings.Join(psStates(), ", "))
			}
		}
	}
	f.states = append(f.states, f.former...)
	if f.limit < 0 {
		return nil, term.Usagef("--limit %d, want > 0, or 0 for all", f.limit)
	}
	switch f.output {
	case "", "wide":
		return func(w io.Writer, doc *api.Jobs) error { return f.table(w, cmd.ErrOrStderr(), doc) }, nil
	case "name":
		return writeNames, nil
	case "json":
		if f.watch {
			return func(w io.Writer, doc *api.Jobs) error { return json.NewEncoder(w).Encode(doc) }, nil
		}
		return func(w io.Writer, doc *api.Jobs) error { return term.WriteJSON(w, doc) }, nil
	case "jsonl":
		return writeJobLines, nil
	case "yaml":
		return writeJobsYAML, nil
	case "csv":
		return writeJobsCSV, nil
	}
	return nil, term.Usagef("-o %s, want %s", f.output, strings.Join(psFormats, ", "))
}

// ps lists jobs, once or at every change.
func (f *psFlags) ps(cmd *cobra.Command, c *api.Client, write func(io.Writer, *api.Jobs) error) error {
	filter := api.Filter{User: f.user, Limit: f.limit, Ahead: api.AsSuits}
	ended := f.narrow(&filter)
	if f.output == "name" || f.watch { // the one says no times, the other asks too often
		filter.Ahead = 0
	}
	if !f.all && len(f.states) == 0 {
		filter.States = unfinished
	}
	ask := c.Jobs
	if f.output == "" || f.output == "name" {
		ask = c.Table // which has all that is shown
	}
	show := func() error {
		doc, err := ask(cmd.Context(), filter)
		if err != nil {
			return err
		}
		if ended {
			f.cut(&doc)
		}
		return write(cmd.OutOrStdout(), &doc)
	}
	if !f.watch {
		return show()
	}
	client.Outlast(cmd, c)
	err := changes(cmd.Context(), c, show)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// narrow sets the states of a filter, and reports whether the list is to be cut down by how jobs ended, which a host is
// not asked for.
func (f *psFlags) narrow(filter *api.Filter) (ended bool) {
	for _, s := range f.states {
		if slices.Contains(outcomes, s) {
			s, ended = "done", true
		}
		if !slices.Contains(filter.States, s) {
			filter.States = append(filter.States, s)
		}
	}
	if ended = ended && !slices.Contains(f.states, "done"); ended {
		filter.Limit = 0
	}
	return ended
}

// cut leaves the jobs with one of the states that are wanted, the latest of them if there is a limit.
func (f *psFlags) cut(doc *api.Jobs) {
	doc.Jobs = slices.DeleteFunc(doc.Jobs, func(j api.Job) bool { return !slices.Contains(f.states, jobState(&j)) })
	doc.Total = len(doc.Jobs)
	if f.limit > 0 {
		doc.Jobs = doc.Jobs[max(len(doc.Jobs)-f.limit, 0):]
	}
}

// gatherFor is how long changes are gathered before they are shown.
const gatherFor = time.Second

// changes calls show now and, at most once in gatherFor, whenever something has happened, until ctx ends or something
// fails.
func changes(ctx context.Context, c *api.Client, show func() error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	news, over := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		over <- c.Events(ctx, -1, func(uint64, []byte) error {
			select {
			case news <- struct{}{}:
			default: // it is known that there are news
			}
			return nil
		})
	}()
	for {
		if err := show(); err != nil {
			return err
		}
		select {
		case err := <-over:
			return err
		case <-time.After(gatherFor):
		}
		select {
		case err := <-over:
			return err
		case <-news:
		}
	}
}

// table writes jobs for people. Where a terminal has no room for the times of day of starts, they are left out.
func (f *psFlags) table(w, side io.Writer, doc *api.Jobs) error {
	if len(doc.Jobs) == 0 {
		fmt.Fprintf(side, "no such jobs; submit one by `trainyard submit%s -- COMMAND`, see those that are done "+
			"by --all\n", f.to.Flag())
		return nil
	}
	width := term.WidthOf(w)
	_, tty := term.Terminal(w)
	cut := tty && f.output != "wide" // who reads it otherwise wants all of it
	const roomy = 150
	start, note := startText, ""
	if cut && width < roomy {
		start = startBriefly
		if slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return isAlone(j.Start) }) {
			note = ifAlone + " if no one else comes\n"
		}
	}
	t, columns := f.rows(doc, start)
	if cut {
		t.Cut(1, width)
		t.Cut(columns, width)
	}
	if at, bad := time.Parse(time.RFC3339, doc.AsOf); bad == nil {
		fmt.Fprintf(side, "starts are as foreseen at %s, of so many jobs\n", at.Local().Format(time.TimeOnly))
	}
	return term.WriteText(w, t.Text(width)+note)
}

// rows returns the table of jobs and its last column.
func (f *psFlags) rows(doc *api.Jobs, start func(*api.Job, time.Time) string) (t term.Table, last int) {
	wide := f.output == "wide"
	t = term.Table{Left: 3, Prose: true}
	head := []string{"job", "name", "state", unitHead(doc.Unit), "on", "waited", "ran"}
	if wide {
		head = append(head, "user", "submitted", "starts", "preempted", "resized", "step", "speed")
	}
	priced := wide && slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return j.Worth > 0 })
	if priced {
		head = append(head, "worth")
	}
	ranked := slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return j.Priority != 0 })
	classed := slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return j.Class != "" })
	if ranked {
		head = append(head, "priority")
	}
	if classed {
		head = append(head, "class")
	}
	foreseen := slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return j.Start != nil })
	if foreseen {
		head = append(head, "start")
	}
	t.Add(append(head, "why")...)
	now, _ := time.Parse(time.RFC3339Nano, doc.Now)
	for i := 0; i < len(doc.Jobs); i++ {
		end := i + 1
		if !f.tasks {
			end = i + ofArray(doc.Jobs[i:])
		}
		number, state, j := folded(doc.Jobs[i:end])
		i = end - 1
		row := []string{number, j.Name, state, widthText(j), gpuNames(j.GPUs),
			term.ShortTime(j.QueueSec), term.ShortTime(j.RunSec)}
		if wide {
			row = append(row, j.User, client.When(j.Submitted, now), strconv.Itoa(j.Attempt),
				strconv.Itoa(j.Preemptions), strconv.Itoa(j.Resizes), stepText(j), speedText(j))
		}
		if priced {
			row = append(row, worthText(j.Worth))
		}
		if ranked {
			row = append(row, strconv.Itoa(j.Priority))
		}
		if classed {
			row = append(row, cmp.Or(j.Class, "-"))
		}
		if foreseen {
			row = append(row, start(j, now))
		}
		t.Add(append(row, api.Printable(j.Why))...)
	}
	return t, len(head)
}

// startText says when a job is expected to start, as why and submit do.
func startText(j *api.Job, now time.Time) string {
	if j.Start == nil {
		return "-"
	}
	return within(j.Start, now)
}

// ifAlone marks what holds if no one else comes.
const ifAlone = "*"

// startBriefly is startText without times of day.
func startBriefly(j *api.Job, now time.Time) string {
	switch {
	case j.Start == nil:
		return "-"
	case !known(j.Start):
		return "no idea yet"
	case isAlone(j.Start):
		return fromNow(j.Start, now) + ifAlone
	}
	return fromNow(j.Start, now)
}

// jobState is the state of a job in a word or two.
func jobState(j *api.Job) string {
	if j.State == "done" {
		return j.Outcome
	}
	return j.State
}

func stepText(j *api.Job) string {
	switch {
	case j.Step == 0 && j.Total == 0:
		return "-"
	case j.Total == 0:
		return strconv.FormatInt(j.Step, 10)
	}
	return fmt.Sprintf("%d/%d", j.Step, j.Total)
}

// worthText says what each GPU is worth, to a job or to all.
func worthText(worth float64) string {
	switch {
	case worth == 0:
		return "-"
	case worth >= anyPrice:
		return "any"
	case worth >= 10:
		return strconv.FormatFloat(worth, 'f', 0, 64)
	}
	return strconv.FormatFloat(worth, 'g', 2, 64)
}

// anyPrice is what documents have where a job takes GPUs at any price.
const anyPrice = 1e308

func speedText(j *api.Job) string {
	if j.Speed == 0 {
		return "-"
	}
	return strconv.FormatFloat(j.Speed, 'f', 2, 64)
}

// gpuNames lists names of GPUs by what distinguishes them.
func gpuNames(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	words := make([]string, len(names))
	for i, name := range names {
		if words[i] = strings.TrimPrefix(name, "slot-"); strings.HasPrefix(name, "GPU-") && len(name) > 12 {
			words[i] = name[:12]
		}
	}
	return strings.Join(words, ",")
}

func writeNames(w io.Writer, doc *api.Jobs) error {
	var b strings.Builder
	for i := range doc.Jobs {
		fmt.Fprintln(&b, doc.Jobs[i].ID)
	}
	return term.WriteText(w, b.String())
}

func writeJobLines(w io.Writer, doc *api.Jobs) error {
	e := json.NewEncoder(w)
	for i := range doc.Jobs {
		if err := e.Encode(&doc.Jobs[i]); err != nil {
			return fmt.Errorf("output: %w", err)
		}
	}
	return nil
}

func writeJobsYAML(w io.Writer, doc *api.Jobs) error {
	b, err := yaml.MarshalWithOptions(doc, yaml.UseJSONMarshaler())
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return term.WriteText(w, string(b))
}

// jobCells are the columns of jobs as comma-separated values.
var jobCells = []struct {
	name  string
	some  bool // only where some job has it
	value func(*api.Job) string
}{
	{"id", false, func(j *api.Job) string { return strconv.Itoa(j.ID) }},
	{"name", false, func(j *api.Job) string { return j.Name }},
	{"user", false, func(j *api.Job) string { return j.User }},
	{"state", false, func(j *api.Job) string { return j.State }},
	{"outcome", false, func(j *api.Job) string { return j.Outcome }},
	{"exit_code", false, func(j *api.Job) string { return strconv.Itoa(j.ExitCode) }},
	{"gpus", false, briefWidth},
	{"on", false, func(j *api.Job) string { return strings.Join(j.GPUs, " ") }},
	{"attempts", false, func(j *api.Job) string { return strconv.Itoa(j.Attempt) }},
	{"preemptions", false, func(j *api.Job) string { return strconv.Itoa(j.Preemptions) }},
	{"resizes", false, func(j *api.Job) string { return strconv.Itoa(j.Resizes) }},
	{"submitted", false, func(j *api.Job) string { return j.Submitted }},
	{"started", false, func(j *api.Job) string { return j.Started }},
	{"ended", false, func(j *api.Job) string { return j.Ended }},
	{"queue_s", false, func(j *api.Job) string { return decimal(j.QueueSec) }},
	{"run_s", false, func(j *api.Job) string { return decimal(j.RunSec) }},
	{"gpu_seconds", false, func(j *api.Job) string { return decimal(j.GPUSeconds) }},
	{"energy_j", false, func(j *api.Job) string { return decimal(j.EnergyJ) }},
	{"priority", true, func(j *api.Job) string { return strings.TrimPrefix(strconv.Itoa(j.Priority), "0") }},
	{"class", true, func(j *api.Job) string { return j.Class }},
	{"time_limit", true, func(j *api.Job) string { return j.TimeLimit }},
	{"gpu_seconds_in_use", true, func(j *api.Job) string { return measured(j.InUseSec) }},
	{"gpu_memory_peak_gb", true, func(j *api.Job) string { return measured(j.PeakGB) }},
}

// measured is what was measured; "" = nothing was.
func measured(x float64) string {
	if x == 0 {
		return ""
	}
	return decimal(x)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func writeJobsCSV(w io.Writer, doc *api.Jobs) error {
	var head []string
	var cells []func(*api.Job) string
	for _, c := range jobCells {
		if !c.some || slices.ContainsFunc(doc.Jobs, func(j api.Job) bool { return c.value(&j) != "" }) {
			head, cells = append(head, c.name), append(cells, c.value)
		}
	}
	c := csv.NewWriter(w)
	_ = c.Write(head)
	row := make([]string, len(cells))
	for i := range doc.Jobs {
		for k := range cells {
			row[k] = cells[k](&doc.Jobs[i])
		}
		_ = c.Write(row)
	}
	c.Flush()
	return c.Error()
}
