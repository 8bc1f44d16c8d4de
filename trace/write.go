package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/internal/bound"
	"github.com/trainyard/trainyard/internal/suggest"
	"github.com/trainyard/trainyard/sched"
)

// ErrWrite is what errors of writing a trace wrap, so that they can be distinguished from those of reading one.
var ErrWrite = errors.New("trace: write")

// errProfiled is returned for a trace that does not say what is to be written.
var errProfiled = fmt.Errorf("%w: widths and durations of the jobs follow from profiles, want a trace that states them",
	ErrWrite)

// Written lists the formats that Write writes.
func Written() []string { return []string{trainyardLayout.name, swfLayout.name} }

// output writes jobs in one format. It is shown every job before the first is written, to find out what there is to
// write and whether it can be.
type output interface {
	see(j *Job) (why string) // why j cannot be written, or ""
	head(b []byte, t *Trace) []byte
	row(b []byte, j *Job) []byte
}

// newOutput returns the output of the format named, with notes on the trace as a whole if notes is set.
func newOutput(format string, notes bool) (output, error) {
	switch format {
	case trainyardLayout.name:
		return &csvOut{notes: notes}, nil
	case swfLayout.name:
		return newSWFOut(), nil
	}
	return nil, fmt.Errorf("%w: format %q%s, want one of %s", ErrWrite, format, suggest.Hint(format, Written()),
		strings.Join(Written(), ", "))
}

// Write writes t in one of the formats that Written lists. With notes, a file of Trainyard's own starts with comment
// lines that say what is known of the trace: source, origin of times, rows left out; Parse takes Source and Origin from
// them. A file in SWF always says so; it keeps of a job what SWF has fields for: submission, width, run time, state,
// limit, user and group, and their names as numbers in order of first appearance. It fails before writing anything if a
// job cannot be written, or if t is Profiled.
func (t *Trace) Write(w io.Writer, format string, notes bool) error {
	out, err := newOutput(format, notes)
	switch {
	case err != nil:
		return err
	case t.Profiled:
		return errProfiled
	}
	index := newNameIndex()
	for i := range t.Jobs {
		j := &t.Jobs[i]
		why := out.see(j)
		if why == "" && index.add(t.Jobs[:i+1]) >= 0 {
			why = "an earlier job has that name, want a name of its own"
		}
		if why != "" {
			return unwritten(i, j, why)
		}
	}
	rows := newRows(w, out, t)
	for i := range t.Jobs {
		rows.write(&t.Jobs[i])
	}
	return rows.flush()
}

func unwritten(i int, j *Job, why string) error {
	return fmt.Errorf("%w: job %d %q: %s", ErrWrite, i, clip(j.Spec.Name), why)
}

// rows writes rows of an output. The first error sticks until flush.
type rows struct {
	out  output
	to   *bufio.Writer
	line []byte
}

// newRows starts to write with the head of a file.
func newRows(w io.Writer, out output, t *Trace) *rows {
	r := &rows{out: out, to: bufio.NewWriterSize(w, 64<<10)}
	_, _ = r.to.Write(out.head(nil, t))
	return r
}

func (r *rows) write(j *Job) {
	r.line = append(r.out.row(r.line[:0], j), '\n')
	_, _ = r.to.Write(r.line)
}

func (r *rows) flush() error {
	if err := r.to.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// csvOut is the output in Trainyard's own format.
type csvOut struct {
	notes   bool
	used    [meanings]bool
	columns []column
	value   []byte
}

func (o *csvOut) see(j *Job) (why string) {
	if why = unwritable(j); why != "" {
		return why
	}
	for _, c := range trainyardLayout.columns {
		if c.optional && !o.used[c.means] {
			o.value = appendValue(o.value[:0], j, c.means)
			o.used[c.means] = len(o.value) > 0
		}
	}
	return ""
}

func (o *csvOut) head(b []byte, t *Trace) []byte {
	if o.notes {
		b = append(b, t.notes("#")...)
	}
	o.columns = slices.DeleteFunc(slices.Clone(trainyardLayout.columns), func(c column) bool {
		return c.optional && !o.used[c.means]
	})
	for i, c := range o.columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c.name...)
	}
	return append(b, '\n')
}

func (o *csvOut) row(b []byte, j *Job) []byte {
	for k, c := range o.columns {
		if k > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, j, c.means)
	}
	return b
}

// appendValue appends what stands in the column that means m, nothing if it says nothing.
func appendValue(b []byte, j *Job, m meaning) []byte {
	switch m {
	case jobID:
		return appendWord(b, j.Spec.Name)
	case submit:
		return sched.AppendSeconds(b, time.Duration(j.Spec.Submit))
	case gpuParts:
		if j.MilliGPU > 0 {
			return sched.AppendSeconds(b, time.Duration(j.MilliGPU)*time.Millisecond) // thousandths of whatever it be
		}
		return strconv.AppendInt(b, int64(j.Spec.GPUs.Want), 10)
	case attempts:
		return appendUnless0(b, int64(j.Attempts))
	case saves:
		return append(b, j.Saves.String()...)
	case preemptible:
		if j.Spec.Preempt == sched.AfterSave {
			return b
		}
		return append(b, j.Spec.Preempt.String()...)
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

// appendWord appends s, in quotation marks where it has commas or quotation marks in it, or blanks at an end.
func appendWord(b []byte, s string) []byte {
	if strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '"') < 0 && bare(s) == s {
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
	}
	if wrong := unwritableSize(j); wrong != "" {
		return wrong
	}
	switch {
	case s.Types != 0:
		return "types by number, want the name in GPUType"
	case !hasColumns(s):
		return "cpus, memory, sharing, retries, not-before time or dependencies, for which there is no column"
	}
	for _, word := range [...]string{s.User, s.Group, s.Model, s.Class, j.State, j.GPUType} {
		if !printable(word) {
			return fmt.Sprintf("%q, %s", clip(word), wantWord)
		}
	}
	return ""
}

// unwritableSize is unwritable for numbers of GPUs, samples and attempts.
func unwritableSize(j *Job) string {
	gpus, batch, milli := j.Spec.GPUs, j.Spec.Batch, j.MilliGPU
	switch {
	case gpus != sched.Rigid(int(gpus.Want)) || !bound.Within(gpus.Want, 1, MaxGPUs):
		return fmt.Sprintf("gpus %d..%d with default %d, want one number from 1 to %d", gpus.Min, gpus.Max, gpus.Want,
			MaxGPUs)
	case j.Attempts < 0:
		return fmt.Sprintf("attempts %d, want >= 0", j.Attempts)
	case milli < 0 || milli > 0 && (milli%1000 == 0 || milli/1000+1 != gpus.Want):
		return fmt.Sprintf("%d thousandths of %d GPUs, want a part of the last of them", milli, gpus.Want)
	case batch.Max < 0 || batch != sched.BatchRange{Min: batch.Max, Max: batch.Max}:
		return fmt.Sprintf("batch %d..%d with %d per GPU, want one number, none per GPU", batch.Min, batch.Max,
			batch.PerGPU)
	}
	return ""
}

// hasColumns reports whether there is a column for all that s says.
func hasColumns(s *sched.JobSpec) bool {
	return s.CPUs == 0 && s.MemoryGB == 0 && s.GPUMemGB == 0 && s.Share == 0 && s.Retries == 0 && s.NotBef == 0 &&
		len(s.After) == 0
}

func timeOK(t time.Duration) bool { return t >= 0 && t <= MaxTime }
