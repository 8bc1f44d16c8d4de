package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/sched"
)

// WriteCSV writes t in Trainyard's own format: the four columns that must be there, then those optional ones that some
// job has a value for. Parse of what it wrote gives equal Jobs; Path, Format, Warnings and Zone are not kept. It fails
// before writing anything if a job says something for which the format has no column or which Parse would refuse.
func (t *Trace) WriteCSV(w io.Writer) error {
	columns, err := t.columns()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	line := make([]byte, 0, 256)
	for i, c := range columns {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, c.name...)
	}
	_, _ = out.Write(append(line, '\n')) // the first error sticks until Flush
	for i := range t.Jobs {
		line = line[:0]
		for k, c := range columns {
			if k > 0 {
				line = append(line, ',')
			}
			line = appendValue(line, &t.Jobs[i], c.means)
		}
		_, _ = out.Write(append(line, '\n'))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("trace: write: %w", err)
	}
	return nil
}

// columns checks that every job can be written and returns the columns needed.
func (t *Trace) columns() ([]column, error) {
	var used [meanings]bool
	var value []byte
	index := newNameIndex()
	for i := range t.Jobs {
		j := &t.Jobs[i]
		why := unwritable(j)
		if why == "" && index.add(t.Jobs[:i+1]) >= 0 {
			why = "an earlier job has that name, want a name of its own"
		}
		if why != "" {
			return nil, fmt.Errorf("trace: write: job %d %q: %s", i, clip(j.Spec.Name), why)
		}
		for _, c := range trainyardLayout.columns {
			if c.optional && !used[c.means] {
				value = appendValue(value[:0], j, c.means)
				used[c.means] = len(value) > 0
			}
		}
	}
	var list []column
	for _, c := range trainyardLayout.columns {
		if used[c.means] || !c.optional {
			list = append(list, c)
		}
	}
	return list, nil
}

// appendValue appends what stands in the column that means m, nothing if it says nothing.
func appendValue(b []byte, j *Job, m meaning) []byte {
	switch m {
	case jobID:
		return appendWord(b, j.Spec.Name)
	case submit:
		return sched.AppendSeconds(b, time.Duration(j.Spec.Submit))
	case gpus:
		return strconv.AppendInt(b, int64(j.Spec.GPUs.Want), 10)
	case duration:
		return sched.AppendSeconds(b, j.Duration)
	case priority:
		return appendUnless0(b, int64(j.Spec.Priority))
	case batch:
		return appendUnless0(b, int64(j.Spec.Batch.Max))
	case deadline:
		return appendTimeUnless0(b, time.Duration(j.Spec.Deadline))
	case wallTime:
		return appendTimeUnless0(b, j.Spec.WallTime)
	}
	return appendWord(b, *label(j, m))
}

func appendUnless0(b []byte, n int64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(b, n, 10)
}

func appendTimeUnless0(b []byte, t time.Duration) []byte {
	if t == 0 {
		return b
	}
	return sched.AppendSeconds(b, t)
}

// appendWord appends s, in quotation marks where it has commas or quotation marks in it.
func appendWord(b []byte, s string) []byte {
	if strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '"') < 0 {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}

// unwritable says what of j cannot be written or would not be read back, or "".
func unwritable(j *Job) string {
	s := &j.Spec
	switch {
	case s.Name == "" || !printable(s.Name):
		return "name, " + wantID
	case !timeOK(time.Duration(s.Submit)):
		return fmt.Sprintf("submit %v, %s", s.Submit, wantTime)
	case !timeOK(j.Duration):
		return fmt.Sprintf("duration %v, %s", j.Duration, wantTime)
	case !timeOK(s.WallTime) || !timeOK(time.Duration(s.Deadline)):
		return fmt.Sprintf("wall time %v, deadline %v, %s", s.WallTime, s.Deadline, wantTime)
	case s.GPUs != sched.Rigid(int(s.GPUs.Want)) || s.GPUs.Want < 1 || s.GPUs.Want > MaxGPUs:
		return fmt.Sprintf("gpus %d..%d with default %d, want one number from 1 to %d", s.GPUs.Min, s.GPUs.Max, s.GPUs.Want, MaxGPUs)
	case s.Batch.Max < 0 || s.Batch != sched.BatchRange{Min: s.Batch.Max, Max: s.Batch.Max}:
		return fmt.Sprintf("batch %d..%d with %d per GPU, want one number, none per GPU", s.Batch.Min, s.Batch.Max, s.Batch.PerGPU)
	case s.Types != 0:
		return "types by number, want the name in GPUType"
	case s.CPUs != 0 || s.MemoryGB != 0 || s.GPUMemGB != 0 || s.Share != 0 || s.Retries != 0 || s.NotBef != 0 || len(s.After) > 0:
		return "cpus, memory, sharing, retries, not-before time or dependencies, for which there is no column"
	}
	for _, word := range []string{s.User, s.Group, s.Model, s.Class, j.State, j.GPUType} {
		if !printable(word) {
			return fmt.Sprintf("%q, %s", clip(word), wantWord)
		}
	}
	return ""
}

func timeOK(t time.Duration) bool { return t >= 0 && t <= MaxTime }
