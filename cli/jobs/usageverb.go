package jobs

import (
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/api"
	"github.com/trainyard/trainyard/cli/client"
	"github.com/trainyard/trainyard/cli/term"
)

// usageFlags are the flags of usage as given.
type usageFlags struct {
	to         client.Target
	since      term.Days
	by         []string
	csv, json  bool
	price, kwh float64
	zone       string
}

func newUsage() *cobra.Command {
	var f usageFlags
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Say what jobs used: GPU-hours, energy, money",
		Long: `Lists what jobs used, by user or by what --by names: GPU-hours held, and of
these those of useful work, of work that was lost, of starting and of stopping,
which sum to what was held; how long jobs waited; their energy, where it is
known. The JSON says why work was lost, too.`,
		Example: `  trainyard usage --since 30d
  trainyard usage --by day,user --price 2.1 --kwh 0.3 --csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := term.Exactly()(cmd, args); err != nil {
				return err
			}
			return f.check()
		},
		RunE: f.to.Asking(func(cmd *cobra.Command, c *api.Client, _ []string) error {
			q := api.UsageQuestion{By: f.by, Zone: f.zone, Price: f.price, KWh: f.kwh}
			if f.since > 0 {
				q.From = time.Now().Add(-time.Duration(f.since))
			}
			doc, err := api.FiguresOf(c).Usage(cmd.Context(), q)
			if err != nil {
				return client.Mistake(err)
			}
			return f.write(cmd.OutOrStdout(), &doc)
		}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	f.to.AddFlags(cmd)
	fs.Var(&f.since, "since", "only the last `TIME`, as 30d (default: all)")
	fs.StringSliceVar(&f.by, "by", []string{"user"}, "rows by `WORDS`: day, user, group, model, job")
	fs.Float64Var(&f.price, "price", 0, "`MONEY` that an hour of a GPU costs")
	fs.Float64Var(&f.kwh, "kwh", 0, "`MONEY` that a kWh costs")
	fs.StringVar(&f.zone, "tz", "", "time `ZONE` of days, as Europe/Berlin (default: UTC)")
	fs.BoolVar(&f.csv, "csv", false, "as CSV")
	fs.BoolVar(&f.json, "json", false, "as JSON")
	term.CompleteFlag(cmd, "by", term.ListOf(func() []string { return api.UsageWords }))
	return cmd
}

// check refuses flags that say nothing.
func (f *usageFlags) check() error {
	for _, x := range []struct {
		flag string
		is   float64
	}{{"price", f.price}, {"kwh", f.kwh}} {
		if !(x.is >= 0) || math.IsInf(x.is, 0) {
			return term.Usagef("usage: --%s %v, want a number >= 0", x.flag, x.is)
		}
	}
	switch {
	case f.csv && f.json:
		return term.Usagef("usage: --csv and --json, want one of them")
	case f.since < 0:
		return term.Usagef("usage: --since %s, want a time such as 30d", f.since.String())
	}
	for _, word := range f.by {
		if !slices.Contains(api.UsageWords, word) {
			return term.Usagef("usage: --by %q, want some of %s between commas", word,
				strings.Join(api.UsageWords, ", "))
		}
	}
	return nil
}

// write writes the table.
func (f *usageFlags) write(w io.Writer, doc *api.Usage) error {
	if f.json {
		return term.WriteJSON(w, doc)
	}
	rows := f.cells(doc)
	if f.csv {
		c := csv.NewWriter(w)
		_ = c.WriteAll(rows)
		return c.Error()
	}
	t := term.Table{Left: len(doc.By)}
	for i, row := range rows {
		for k := range row {
			if i == 0 {
				row[k] = strings.ReplaceAll(row[k], "_", " ")
			} else if k < len(doc.By) && row[k] == "" {
				row[k] = "-"
			}
		}
		t.Add(row...)
	}
	text := t.Text(term.WidthOf(w))
	if doc.Energy != "" {
		text += "Energy is " + doc.Energy + ".\n"
	}
	return term.WriteText(w, text)
}

// cells returns the rows, the names of columns first; of people with one for all rows, where there are several.
func (f *usageFlags) cells(doc *api.Usage) [][]string {
	head := append(slices.Clone(doc.By), "jobs", "held_h", "useful_h", "redone_h", "starting_h", "stopping_h", "wait_h",
		"kwh")
	if f.csv {
		head = append(head, "energy")
	}
	if f.price > 0 || f.kwh > 0 {
		head = append(head, "cost")
	}
	rows := [][]string{head}
	all := api.UsageRow{}
	for i := range doc.Rows {
		r := &doc.Rows[i]
		rows = append(rows, f.row(doc, r))
		all.Held, all.Useful, all.Redone = all.Held+r.Held, all.Useful+r.Useful, all.Redone+r.Redone
		all.ComingUp, all.Stopping = all.ComingUp+r.ComingUp, all.Stopping+r.Stopping
		all.Wait, all.KWh, all.Cost = all.Wait+r.Wait, all.KWh+r.KWh, all.Cost+r.Cost
	}
	if len(doc.Rows) > 1 && !f.csv {
		row := f.row(doc, &all)
		row[0], row[len(doc.By)] = "all", "" // jobs of several days count in each
		rows = append(rows, row)
	}
	return rows
}

// row returns the cells of a row.
func (f *usageFlags) row(doc *api.Usage, r *api.UsageRow) (row []string) {
	for _, word := range doc.By {
		row = append(row, f.key(word, r))
	}
	number := func(x float64) string {
		if f.csv {
			return strconv.FormatFloat(x, 'f', -1, 64)
		}
		if x > 0 && x < 1 { // an hour has 3600 s: two digits would say of jobs of seconds that they used nothing
			return strconv.FormatFloat(x, 'f', 4, 64)
		}
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	row = append(row, strconv.Itoa(r.Jobs))
	for _, hours := range []float64{r.Held, r.Useful, r.Redone, r.ComingUp, r.Stopping, r.Wait} {
		row = append(row, number(hours))
	}
	switch {
	case doc.Energy != "":
		row = append(row, number(r.KWh))
	case f.csv:
		row = append(row, "")
	default:
		row = append(row, "-")
	}
	if f.csv {
		row = append(row, doc.Energy)
	}
	if f.price > 0 || f.kwh > 0 {
		row = append(row, number(r.Cost))
	}
	return row
}

// key returns what the jobs of a row have in common.
func (f *usageFlags) key(word string, r *api.UsageRow) string {
	switch {
	case word == "day":
		return r.Day
	case word == "user":
		return r.User
	case word == "group":
		return r.Group
	case word == "model":
		return r.Model
	case r.Job == nil:
		return ""
	case f.csv:
		return strconv.Itoa(*r.Job)
	}
	return strings.TrimSpace(strconv.Itoa(*r.Job) + " " + r.Name)
}
