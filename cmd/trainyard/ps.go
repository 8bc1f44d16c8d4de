package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/manager/api"
)

// psFlags are the flags of ps as given.
type psFlags struct {
	state  string
	states []string
	user   string
	limit  int
	all    bool
	output string
	json   bool
	watch  bool
}

func newPs() *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:     "ps",
		Aliases: []string{"queue"},
		Short:   "List jobs: where they run, why they wait",
		Long: `Lists the jobs of a manager by number, those that are done only with --all or a
--job-state that says so. Times are how long jobs have waited and run.`,
		Example: `  trainyard ps
  trainyard ps --all -o csv > jobs.csv`,
		Args: exactly(),
		RunE: asking(&f.state, func(cmd *cobra.Command, c *api.Client, _ []string) error { return f.ps(cmd, c) }),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	addState(cmd, &f.state)
	fs.BoolVarP(&f.all, "all", "a", false, "those that are done as well")
	fs.StringSliceVar(&f.states, "job-state", nil, "only jobs in these `STATES`: held, waiting, starting, running, stopping, done")
	fs.StringVarP(&f.user, "user", "u", "", "only jobs of `USER`")
	fs.IntVarP(&f.limit, "limit", "n", 0, "only the latest `N` (default: all)")
	fs.StringVarP(&f.output, "output", "o", "", "`FORMAT`: wide, name, json, jsonl or csv (default: a table)")
	fs.BoolVar(&f.json, "json", false, "the same as -o json")
	fs.BoolVarP(&f.watch, "watch", "w", false, "once again at every change, until interrupted")
	completeFlag(cmd, "output", oneOf(func() []string { return psFormats }))
	completeFlag(cmd, "job-state", listOf(func() []string { return append([]string{"done"}, unfinished...) }))
	return cmd
}

var psFormats = []string{"wide", "name", "json", "jsonl", "csv"}

// ps lists jobs, once or at every change.
func (f *psFlags) ps(cmd *cobra.Command, c *api.Client) error {
	if f.json {
		f.output = "json"
	}
	write, known := map[string]func(io.Writer, *api.Jobs) error{"": f.table, "wide": f.table, "name": writeNames, "json": func(w io.Writer, d *api.Jobs) error { return writeJSON(w, d) },
		"jsonl": writeJobLines, "csv": writeJobsCSV}[f.output]
	if !known {
		return usagef("-o %s, want %s", f.output, strings.Join(psFormats, ", "))
	}
	filter := api.Filter{States: f.states, User: f.user, Limit: f.limit}
	if !f.all && len(f.states) == 0 {
		filter.States = unfinished
	}
	show := func() error {
		doc, err := c.Jobs(cmd.Context(), filter)
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), &doc)
	}
	if err := show(); err != nil || !f.watch {
		return err
	}
	return f.again(cmd, c, show)
}

// watchEvery is how long changes are gathered before they are shown.
const watchEvery = time.Second

// again shows the list whenever something has changed.
func (f *psFlags) again(cmd *cobra.Command, c *api.Client, show func() error) error {
	due := time.Now()
	return c.Events(cmd.Context(), -1, func(uint64, []byte) error {
		if time.Now().Before(due) {
			return nil
		}
		time.Sleep(watchEvery)
		due = time.Now()
		return show()
	})
}

// table writes jobs for people.
func (f *psFlags) table(w io.Writer, doc *api.Jobs) error {
	if len(doc.Jobs) == 0 {
		return writeText(w, "no jobs; hand one in by `trainyard submit -- COMMAND`\n")
	}
	wide := f.output == "wide"
	t := table{left: 3}
	head := []string{"job", "name", "state", "gpus", "on", "waited", "ran"}
	if wide {
		head = append(head, "user", "submitted", "starts", "preempted", "resized", "step", "speed")
	}
	t.add(append(head, "why")...)
	now, _ := time.Parse(time.RFC3339Nano, doc.Now)
	for i := range doc.Jobs {
		j := &doc.Jobs[i]
		row := []string{strconv.Itoa(j.ID), j.Name, jobState(j), widthText(j), gpuNames(j.GPUs), shortTime(j.QueueSec), shortTime(j.RunSec)}
		if wide {
			row = append(row, j.User, when(j.Submitted, now), strconv.Itoa(j.Attempt), strconv.Itoa(j.Preemptions), strconv.Itoa(j.Resizes), stepText(j), speedText(j))
		}
		t.add(append(row, j.Why)...)
	}
	width := widthOf(w)
	if !wide {
		t.cut(1, width)
		t.cut(len(head), width)
	}
	return writeText(w, t.text(width))
}

// jobState is the state of a job in a word or two.
func jobState(j *api.Job) string {
	if j.State == "done" {
		return j.Outcome
	}
	return j.State
}

// widthText is what a job holds, or wants where it holds nothing.
func widthText(j *api.Job) string {
	switch {
	case len(j.GPUs) > 0:
		return strconv.Itoa(len(j.GPUs))
	case j.Min != j.Max:
		return fmt.Sprintf("%d-%d", j.Min, j.Max)
	}
	return strconv.Itoa(j.Want)
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

func speedText(j *api.Job) string {
	if j.Speed == 0 {
		return "-"
	}
	return strconv.FormatFloat(j.Speed, 'f', 2, 64)
}

// gpuNames lists names of GPUs by what tells them apart.
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
	return writeText(w, b.String())
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

func writeJobsCSV(w io.Writer, doc *api.Jobs) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"id", "name", "user", "state", "outcome", "exit_code", "gpus", "on", "attempts", "preemptions", "resizes", "submitted", "started", "ended",
		"queue_s", "run_s", "gpu_seconds", "energy_j"})
	num := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for i := range doc.Jobs {
		j := &doc.Jobs[i]
		_ = c.Write([]string{strconv.Itoa(j.ID), j.Name, j.User, j.State, j.Outcome, strconv.Itoa(j.ExitCode), widthText(j), strings.Join(j.GPUs, " "),
			strconv.Itoa(j.Attempt), strconv.Itoa(j.Preemptions), strconv.Itoa(j.Resizes), j.Submitted, j.Started, j.Ended, num(j.QueueSec), num(j.RunSec), num(j.GPUSeconds), num(j.EnergyJ)})
	}
	c.Flush()
	return c.Error()
}
