package api

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Headers of a table of jobs: what a Jobs document says of all of them, and how many are listed.
const (
	UnitHeader   = "Trainyard-Unit"
	NowHeader    = "Trainyard-Now"
	ListedHeader = "Trainyard-Listed"
)

// column is one column of a table of jobs: how it is written and read. An empty cell stands for the zero value.
type column struct {
	name  string
	write func(*Job) string
	read  func(*Job, string) error
}

// jobColumns are the columns of a table of jobs, in order. Readers go by their names: later versions may have more.
var jobColumns = []column{
	whole("id", func(j *Job) *int { return &j.ID }),
	words("name", func(j *Job) *string { return &j.Name }),
	words("user", func(j *Job) *string { return &j.User }),
	words("group", func(j *Job) *string { return &j.Group }),
	words("state", func(j *Job) *string { return &j.State }),
	words("outcome", func(j *Job) *string { return &j.Outcome }),
	words("why", func(j *Job) *string { return &j.Why }),
	whole("gpus_min", func(j *Job) *int { return &j.Min }),
	whole("gpus_max", func(j *Job) *int { return &j.Max }),
	{"gpus", func(j *Job) string { return strings.Join(j.GPUs, " ") }, func(j *Job, cell string) error {
		j.GPUs = append(j.GPUs, strings.Fields(cell)...)
		return nil
	}},
	number("queue_s", func(j *Job) *float64 { return &j.QueueSec }),
	number("run_s", func(j *Job) *float64 { return &j.RunSec }),
	{"array", writeTask, readTask},
	{"start", writeStart, readStart},
	words("class", func(j *Job) *string { return &j.Class }),
	whole("priority", func(j *Job) *int { return &j.Priority }),
}

func words(name string, of func(*Job) *string) column {
	return column{name, func(j *Job) string { return *of(j) }, func(j *Job, cell string) error {
		*of(j) = strings.ToValidUTF8(cell, "\ufffd")
		return nil
	}}
}

func whole(name string, of func(*Job) *int) column {
	return column{name, func(j *Job) string {
		return strconv.Itoa(*of(j))
	}, func(j *Job, cell string) (err error) {
		*of(j), err = strconv.Atoi(cell)
		return err
	}}
}

func number(name string, of func(*Job) *float64) column {
	return column{name, func(j *Job) string {
		return strconv.FormatFloat(*of(j), 'f', -1, 64)
	}, func(j *Job, cell string) (err error) {
		*of(j), err = strconv.ParseFloat(cell, 64)
		return err
	}}
}

// writeTask says which task of which array a job is: FIRST INDEX SIZE AT_ONCE.
func writeTask(j *Job) string {
	if j.Array == nil {
		return ""
	}
	return fmt.Sprint(j.Array.First, j.Array.Index, j.Array.Size, j.Array.AtOnce)
}

func readTask(j *Job, cell string) (err error) {
	if cell == "" {
		return nil
	}
	j.Array = new(Task)
	for _, into := range []*int{&j.Array.First, &j.Array.Index, &j.Array.Size, &j.Array.AtOnce} {
		var text string
		text, cell, _ = strings.Cut(cell, " ")
		if *into, err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	return nil
}

// writeStart says when a job is expected to start: KNOWN ALONE LOW MEDIAN HIGH, of which the last three may be absent.
func writeStart(j *Job) string {
	if j.Start == nil {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf("%t %t %s %s %s", j.Start.Known, j.Start.Alone, j.Start.Low, j.Start.Median,
		j.Start.High), " ")
}

func readStart(j *Job, cell string) (err error) {
	if cell == "" {
		return nil
	}
	list := append(strings.Split(cell, " "), "", "", "", "")
	j.Start = &Within{Low: list[2], Median: list[3], High: list[4]}
	if j.Start.Known, err = strconv.ParseBool(list[0]); err == nil {
		j.Start.Alone, err = strconv.ParseBool(list[1])
	}
	return err
}

// WriteTable writes jobs as comma-separated values under a line of names: of each what a list of many shows, and what
// jobs are selected by. Names of GPUs have no blanks.
func WriteTable(w io.Writer, jobs []Job) error {
	c := csv.NewWriter(w)
	line := make([]string, len(jobColumns))
	for i := range jobColumns {
		line[i] = jobColumns[i].name
	}
	if err := c.Write(line); err != nil {
		return err
	}
	for i := range jobs {
		for k := range jobColumns {
			line[k] = jobColumns[k].write(&jobs[i])
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// maxListed bounds what is allotted before anything is read.
const maxListed = 100_000

// errNoTable is the error of an answer that is no table of jobs.
var errNoTable = errors.New("is no table of jobs")

// ReadTable reads what WriteTable wrote, about so many jobs. Columns that it does not know are passed over, fields
// without a column stay empty. What is no table is an error.
func ReadTable(r io.Reader, about int) ([]Job, error) {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoTable, err)
	}
	head = slices.Clone(head)
	read := make([]func(*Job, string) error, len(head))
	known := 0
	for i, name := range head {
		for k := range jobColumns {
			if jobColumns[k].name == name {
				read[i] = jobColumns[k].read
				known++
			}
		}
	}
	if known == 0 {
		return nil, errNoTable
	}
	jobs := make([]Job, 0, min(max(about, 0), maxListed))
	for {
		line, err := c.Read()
		if errors.Is(err, io.EOF) {
			return jobs, nil
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, Job{GPUs: []string{}})
		for i, cell := range line {
			if read[i] == nil {
				continue
			}
			if err := read[i](&jobs[len(jobs)-1], cell); err != nil {
				row, column := c.FieldPos(i)
				return nil, fmt.Errorf("line %d, column %d, %s: %w", row, column, head[i], err)
			}
		}
	}
}
