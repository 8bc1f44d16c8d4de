package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/metrics"
	"github.com/trainyard/trainyard/metrics/timeline"
	"github.com/trainyard/trainyard/sched"
)

// cell is a text that no spreadsheet takes for a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// seconds writes a time in seconds; "" = it never came.
func seconds(t sched.Time) string {
	if t == sched.None {
		return ""
	}
	return number(t.Seconds())
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// resources writes GPUs as a set of Evalys: 0-3 5.
func resources(runs []timeline.Run) string {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b timeline.Run) int { return int(a.First - b.First) })
	var words []string
	for i := 0; i < len(runs); {
		first, next := runs[i].First, runs[i].First+sched.GPUID(runs[i].Count)
		for i++; i < len(runs) && runs[i].First <= next; i++ {
			next = max(next, runs[i].First+sched.GPUID(runs[i].Count))
		}
		if next == first+1 {
			words = append(words, strconv.Itoa(int(first)))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", first, next-1))
		}
	}
	return strings.Join(words, " ")
}

var evalysColumns = []string{"job_id", "workload_name", "submission_time", "requested_number_of_resources",
	"requested_time", "success", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
	"stretch", "allocated_resources"}

// Evalys writes a run as a JobSet of Evalys, in seconds: a row for each attempt that ended, or with jobs for each job
// that did, from its first start to its end on all GPUs that it had. No time was requested: -1.
func Evalys(w io.Writer, workload string, t *timeline.Timeline, list []metrics.Job, jobs bool) error {
	c := csv.NewWriter(w)
	_ = c.Write(evalysColumns)
	line := func(id string, j *timeline.Job, wide int, good bool, start, end sched.Time, runs []timeline.Run,
		waits, turnaround float64) {
		success, ran := "0", end.Sub(start).Seconds()
		if good {
			success = "1"
		}
		stretch := ""
		if ran > 0 {
			stretch = number(turnaround / ran)
		}
		_ = c.Write([]string{id, cell(workload), seconds(j.Submit), strconv.Itoa(wide), "-1", success, seconds(start),
			number(ran), seconds(end), number(waits), number(turnaround), stretch, resources(runs)})
	}
	if !jobs {
		for i := range t.Attempts {
			a := &t.Attempts[i]
			j := &t.Jobs[a.Job]
			if a.Ended != sched.None {
				line(fmt.Sprintf("%d#%d", a.Job, a.Number), j, a.Width(), a.Outcome == sched.Finished, a.Ordered,
					a.Ended, a.GPUs, a.Ordered.Sub(j.Submit).Seconds(), a.Ended.Sub(j.Submit).Seconds())
			}
		}
		c.Flush()
		return c.Error()
	}
	held := make([][]timeline.Run, len(t.Jobs))
	for i := range t.Attempts {
		held[t.Attempts[i].Job] = append(held[t.Attempts[i].Job], t.Attempts[i].GPUs...)
	}
	for id := range list {
		m, j := &list[id], &t.Jobs[id]
		if m.Finish != sched.None && m.Start != sched.None {
			line(strconv.Itoa(id), j, int(j.GPUs.Want), m.Outcome == sched.Finished, m.Start, m.Finish, held[id],
				m.Start.Sub(j.Submit).Seconds(), m.Finish.Sub(j.Submit).Seconds())
		}
	}
	c.Flush()
	return c.Error()
}

// Tables are those that CSV writes.
var Tables = []string{"jobs", "attempts", "series"}

// CSV writes one of Tables of a run: times are seconds from its origin; what never came is empty.
func CSV(w io.Writer, table string, t *timeline.Timeline, list []metrics.Job) error {
	c := csv.NewWriter(w)
	switch table {
	case "jobs":
		jobsTable(c, t, list)
	case "attempts":
		attemptsTable(c, t)
	default:
		seriesTable(c, t)
	}
	c.Flush()
	return c.Error()
}

func jobsTable(c *csv.Writer, t *timeline.Timeline, list []metrics.Job) {
	_ = c.Write([]string{"job", "name", "user", "model", "class", "gpus", "gpus_min", "gpus_max", "submit_s", "start_s",
		"finish_s", "outcome", "run_s", "gpu_s", "lost_gpu_s", "energy_j", "preemptions", "migrations", "resizes"})
	for id := range list {
		m, j := &list[id], &t.Jobs[id]
		_ = c.Write([]string{strconv.Itoa(id), cell(j.Name), cell(j.User), cell(j.Model), cell(j.Class),
			strconv.Itoa(int(j.GPUs.Want)), strconv.Itoa(int(j.GPUs.Min)), strconv.Itoa(int(j.GPUs.Max)),
			seconds(j.Submit), seconds(m.Start), seconds(m.Finish), m.Outcome.String(), number(m.Run.Seconds()),
			number(float64(m.Service)), number(float64(m.Lost)), number(float64(m.Energy)),
			strconv.Itoa(int(m.Preemptions)), strconv.Itoa(int(m.Migrations)), strconv.Itoa(int(m.Resizes))})
	}
}

func attemptsTable(c *csv.Writer, t *timeline.Timeline) {
	_ = c.Write([]string{"job", "attempt", "ordered_s", "up_s", "work_s", "stopped_s", "ended_s", "lost_s", "gpus",
		"batch", "outcome", "reason", "by", "which"})
	for i := range t.Attempts {
		a := &t.Attempts[i]
		by := ""
		if id, named := a.Other(); named {
			by = strconv.Itoa(int(id))
		}
		_ = c.Write([]string{strconv.Itoa(int(a.Job)), strconv.Itoa(int(a.Number)), seconds(a.Ordered), seconds(a.Up),
			seconds(a.Work), seconds(a.Stopped), seconds(a.Ended), number(a.Lost().Seconds()), strconv.Itoa(a.Width()),
			strconv.Itoa(int(a.Batch)), a.Outcome.String(), a.Reason.Code.String(), by, resources(a.GPUs)})
	}
}

func seriesTable(c *csv.Writer, t *timeline.Timeline) {
	s := t.Series()
	_ = c.Write([]string{"from_s", "gpus", "held", "queue_jobs", "queue_gpus", "watts", "dollars_per_hour",
		"energy_dollars_per_hour"})
	for i := range s.Held {
		known := func(list []float64) string {
			if i < len(list) {
				return number(list[i])
			}
			return ""
		}
		_ = c.Write([]string{seconds(s.From.Add(time.Duration(i) * s.Width)), number(s.GPUs[i]), number(s.Held[i]),
			number(s.Queue[i]), number(s.Asked[i]), known(s.Watts), known(s.Dollars), known(s.EnergyDollars)})
	}
}
